import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { isWord, setLanguage } from '../lang/i18n';
import { act, cause, failureClass } from './cause';

/** What the services can write down as a reason. */
const files = import.meta.glob<string>(
  [
    '../../../../../../platform/{consumer,delay,failure,event,pgpool}/*.go',
    '../../../../{notifier,webhook}/*.go',
    '!../../../../../../**/*_test.go',
  ],
  { query: '?raw', import: 'default', eager: true },
);
const go = Object.values(files).join('\n');

describe('in Indonesian', () => {
  beforeEach(() => setLanguage('id'));
  afterEach(() => setLanguage('en'));

  test.each([
    ['recipient header is missing', 'Header penerima tidak ada'],
    ['body breaks the contract: new_score: want a number', 'Isi melanggar kontrak: new_score: harus sebuah bilangan'],
    [
      'body breaks the contract: vote_type: want one of upvote, downvote',
      'Isi melanggar kontrak: vote_type: harus salah satu dari upvote, downvote',
    ],
    ['body is not valid JSON at byte 14', 'Isi bukan JSON yang sah pada bita 14'],
    ['x-not-before is more than 365 days ahead', 'x-not-before lebih dari 365 hari ke depan'],
    ['SQLSTATE 23505, table streams', 'SQLSTATE 23505, table streams'],
  ])('%s', (text, want) => expect(cause(text)).toBe(want));

  test('the classes and the acts have words, too', () => {
    expect([failureClass('transient'), act('replay_paused'), act('of another program')]).toEqual([
      'sementara',
      'Pengiriman ulang dijeda',
      'of another program',
    ]);
  });

  test('every reason that the services write down', () => {
    const reasons = [...go.matchAll(/failure\.Refuse\("([^"]+)"\)|Text: "([^"]+)"|return "(the [^"]+)"/g)].map(
      ([, a, b, c]) => a ?? b ?? c ?? '',
    );
    expect(reasons.length).toBeGreaterThan(10);
    expect(reasons.filter((text) => !isWord(`cause.${text}`))).toEqual([]);
    const wants = [...go.matchAll(/(?:&FieldError\{"\w+", |Want: )"([^"]+)"/g)]
      .map(([, want]) => want ?? '')
      .filter((want) => !want.startsWith('one of'));
    expect(wants.length).toBeGreaterThan(10);
    expect(wants.filter((want) => !isWord(`want.${want}`))).toEqual([]);
    const classes = [...(files['../../../../../../platform/failure/failure.go'] ?? '').matchAll(/Class = "(\w+)"/g)].map(
      ([, name]) => name ?? '',
    );
    expect(classes.length).toBeGreaterThan(4);
    expect(classes.filter((name) => !isWord(`failure-class.${name}`))).toEqual([]);
  });
});

test('in English a reason is as it was written', () => {
  expect(cause('body breaks the contract: new_score: want a number')).toBe('body breaks the contract: new_score: want a number');
});
