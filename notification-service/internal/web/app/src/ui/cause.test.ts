import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { isWord, setLanguage } from '../lang/i18n';
import { act, cause, failureClass } from './cause';

/** The reasons that the services can write down. */
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
    ['body breaks the contract: new_score: must be a number', 'Isi melanggar kontrak: new_score: harus sebuah bilangan'],
    [
      'body breaks the contract: vote_type: must be one of upvote, downvote',
      'Isi melanggar kontrak: vote_type: harus salah satu dari upvote, downvote',
    ],
    ['body breaks the contract: voter_id: want the id of a user', 'Isi melanggar kontrak: voter_id: harus id seorang pengguna'],
    ['body breaks the contract: report_title: want some text', 'Isi melanggar kontrak: report_title: harus teks yang tidak kosong'],
    ['body is not valid JSON at byte 14', 'Isi bukan JSON yang sah pada byte 14'],
    ['x-not-before is more than 365 days ahead', 'x-not-before lebih dari 365 hari ke depan'],
    ['SQLSTATE 23505, table streams', 'SQLSTATE 23505, table streams'],
    ['the disk of the database is full (SQLSTATE 53100)', 'Cakram basis data penuh (SQLSTATE 53100)'],
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
    const requirements = [...go.matchAll(/(?:&FieldError\{"\w+", |Must: )"([^"]+)"/g)]
      .map(([, must]) => must ?? '')
      .filter((must) => !must.startsWith('one of'));
    expect(requirements.length).toBeGreaterThan(10);
    expect(requirements.filter((must) => !isWord(`must.${must}`))).toEqual([]);
    const classes = [...(files['../../../../../../platform/failure/failure.go'] ?? '').matchAll(/Class = "(\w+)"/g)].map(
      ([, name]) => name ?? '',
    );
    expect(classes.length).toBeGreaterThan(4);
    expect(classes.filter((name) => !isWord(`failure-class.${name}`))).toEqual([]);
  });
});

test('in English a reason is as it was written', () => {
  expect(cause('body breaks the contract: new_score: must be a number')).toBe('body breaks the contract: new_score: must be a number');
});

test('a reason that an earlier version wrote reads as those of today', () => {
  expect(cause('body breaks the contract: body: want another type of value')).toBe(
    'body breaks the contract: body: must be of another type',
  );
});
