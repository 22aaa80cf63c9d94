import { afterEach, describe, expect, test, vi } from 'vitest';

import problems from '../../../../../../docs/problems.md?raw';
import type { DeadLetter, Delivery, Notification, OutboxAct, Replay, Status, VoteType, Webhook } from '../api/client';
import { preferences } from '../state/preferences';
import type { Role } from '../state/session';
import * as ops from './console';
import { isWord, language, languages, preferredLanguage, setLanguage, t, tn, withWords, type Forms } from './i18n';
import './dialogue';
import './queue';
import './guest';
import './privacy';
import './report';
import './settings';

const sources = import.meta.glob<string>(['../**/*.{ts,tsx}', '!../**/*.{test,gen}.*'], { query: '?raw', import: 'default', eager: true });

type Words = Record<string, string | undefined>;
const files = import.meta.glob<Words>('./*.json', { import: 'default', eager: true });
/** The English files, and what each is called in another language. */
const english = Object.keys(files).filter((file) => file.endsWith('.en.json'));
const inLanguage = (file: string, tag: string) => file.replace('en.json', `${tag}.json`);
const en = Object.assign({}, ...english.map((file) => files[file])) as Record<string, string>;

const all = (Object.keys(languages()) as (keyof Forms)[]).flatMap((tag) =>
  english.map((file) => ({ tag, name: inLanguage(file, tag), english: files[file]!, words: files[inLanguage(file, tag)] ?? {} })),
);

/** The names in braces that a text is filled in with. */
const gaps = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

test('there are no files but those, and no word is in two', () => {
  expect(Object.keys(files).sort()).toEqual(all.map(({ name }) => name).sort());
  expect(Object.keys(en)).toHaveLength(english.reduce((sum, file) => sum + Object.keys(files[file]!).length, 0));
});

/** The plural forms of each language, which the compiler counts. */
const forms: { [Tag in keyof Forms]: Record<Forms[Tag], true> } = { en: { one: true, other: true }, id: { other: true } };

test('each language has the plural forms that Intl.PluralRules chooses from', () => {
  expect(Object.keys(forms)).toEqual(Object.keys(languages()));
  for (const [tag, has] of Object.entries(forms)) {
    const chosen = new Intl.PluralRules(tag).resolvedOptions().pluralCategories;
    expect([tag, Object.keys(has).sort()]).toEqual([tag, chosen.sort()]);
  }
});

/** The common part of the forms of a word that differs by number; empty for another word. */
function stemOf(key: string, english: Words): string {
  const [, stem = ''] = /^(.+)\.(?:zero|one|two|few|many|other)$/.exec(key) ?? [];
  return `${stem}.one` in english && `${stem}.other` in english ? stem : '';
}

describe.each(all)('$name', ({ tag, english, words }) => {
  test('has the words of English in the forms of its language, and no others', () => {
    const want = Object.keys(english).flatMap((key) => {
      const stem = stemOf(key, english);
      return stem ? Object.keys(forms[tag]).map((form) => `${stem}.${form}`) : [key];
    });
    expect(Object.keys(words).sort()).toEqual([...new Set(want)].sort());
  });

  test('says something for each', () => expect(Object.keys(words).filter((key) => !words[key]?.trim())).toEqual([]));

  test('is filled in with the same values', () => {
    for (const [key, text] of Object.entries(words)) {
      const stem = stemOf(key, english);
      expect([key, gaps(text ?? '')]).toEqual([key, gaps(english[stem ? `${stem}.other` : key] ?? '')]);
    }
  });
});

/** Every member of a union, which the compiler counts. */
const members = <T extends string>(each: Record<T, true>) => Object.keys(each);

describe('there is a word for', () => {
  test.each([
    ['status', members<Status>({ pending: true, in_progress: true, resolved: true, rejected: true })],
    ['vote', members<VoteType>({ upvote: true, downvote: true })],
    ['role', members<Role>({ resident: true, official: true, moderator: true, operator: true, auditor: true })],
    ['dead.state', members<DeadLetter['state']>({ open: true, replaying: true, resolved: true, discarded: true })],
    ['webhooks.state', members<Webhook['state']>({ enabled: true, disabled: true })],
    ['webhooks.reason', members<NonNullable<Webhook['state_reason']>>({ operator: true, gone: true, failing: true })],
    ['delivery.state', members<Delivery['state']>({ waiting: true, held: true, done: true, dead: true, cancelled: true })],
    ['replays.state', members<Replay['state']>({ running: true, paused: true, stopped: true, cancelled: true, done: true })],
  ])('each %s', (prefix, names) => {
    for (const name of names) expect(`${prefix}.${name}`).toSatisfy(isWord);
  });

  test('each act at the outbox', () => {
    // Those of the other service are tested there: notification-service/internal/admin/words_test.go.
    for (const name of members<OutboxAct['action']>({ retry: true, discard: true, republish: true, close: true }))
      expect(`act.outbox ${name}`).toSatisfy(isWord);
  });

  test('every problem that a reader can meet', () => {
    const kinds = [...problems.matchAll(/^## ([\w-]+)$/gm)].map(([, kind]) => kind);
    expect(kinds.length).toBeGreaterThan(15);
    // Those that only a mistake of the page could cause.
    const mistakes = ['malformed-body', 'unsupported-media-type', 'body-too-large', 'cross-site', 'method-not-allowed'];
    mistakes.push('precondition-required', 'malformed-request', 'uri-too-long', 'header-too-large', 'http-not-supported');
    // Those that the server explains better, or a screen in words of its own.
    const explained = ['conflict', 'idempotency-key-reused', 'signpost'];
    const others = [...mistakes, ...explained];
    expect(kinds.filter((kind) => !isWord(`problem.${kind}`) && !others.includes(kind ?? ''))).toEqual([]);
  });
});

test('every event has words', () => {
  const types = members<Notification['type']>({
    'report.created': true,
    'report.status.updated': true,
    'report.vote.received': true,
    'report.moderated': true,
    'report.corrected': true,
    'report.disputed': true,
    'report.question.asked': true,
    'report.question.reminded': true,
    'report.answered': true,
    'report.question.expired': true,
    'report.commented': true,
    'report.overdue': true,
    'report.photo.ready': true,
    'report.photo.refused': true,
  });
  expect(types).toHaveLength(14);
});

test('no word is left that nothing says', () => {
  const code = Object.values(sources).join('\n');
  // Made of a fixed part and a name: t(`status.${status}`).
  const prefixes = [...code.matchAll(/`([a-z][\w.-]*\.)\$\{/g)].map(([, prefix]) => prefix ?? '');
  const quoted = new Set([...code.matchAll(/['"]([\w.-]+)(?=['"])/g)].map(([, word]) => word));
  const said = (key: string) =>
    quoted.has(key) || quoted.has(key.replace(/\.(one|other)$/, '')) || prefixes.some((prefix) => key.startsWith(prefix));
  expect(Object.keys(en).filter((key) => !said(key))).toEqual([]);
});

describe('words that nobody says do not return', () => {
  // Stilted or misleading ones, which readers stumbled over: docs/page.md has the glossary.
  const English = /\b(anew|meanwhile|any more|whoever|quarter|want|drawn anew|bulk moves?|workers? stuck)\b/i;
  const Indonesian =
    /\b(surel|peramban|bita|luring|saringan|konsumen|pekerja|racun|titik akhir|uji kering|pesan mati|(di)?putar ulang|menyerah|digambar|meja kerja|pemindahan|dipindahkan|basis data hilang)\b/i;
  const files = import.meta.glob<Record<string, string>>('./*.json', { eager: true, import: 'default' });
  test.each(Object.entries(files))('%s', (file, words) => {
    const banned = file.endsWith('id.json') ? Indonesian : English;
    // Causes repeat the services' wording.
    const found = Object.entries(words).filter(([key, text]) => !key.startsWith('cause.') && banned.test(text));
    expect(found).toEqual([]);
  });
});

describe('words', () => {
  afterEach(async () => {
    preferences.language.value = '';
    await setLanguage('en');
  });

  test('are filled in', () => expect(t('report.by', { name: 'Ana {b}' })).toBe('by Ana {b}'));

  test('differ by number', () => {
    expect([tn('bell', 1), tn('score', 0), tn('score', -1)]).toEqual(['Notifications, 1 unread', 'votes', 'vote']);
    expect([0, 1, 1_234].map((count) => ops.tn('dead.count', count))).toEqual(['0 messages', '1 message', '1,234 messages']);
  });

  test('have the forms of the chosen language alone', async () => {
    await setLanguage('id');
    expect([0, 1, 1_234].map((count) => ops.tn('dead.count', count))).toEqual(['0 pesan', '1 pesan', '1.234 pesan']);
    expect(['dead.count.one', 'dead.count.other'].map((key) => isWord(key))).toEqual([false, true]);
  });

  test('are those of the chosen language', async () => {
    await setLanguage('id');
    expect([t('status.resolved'), document.documentElement.lang]).toEqual(['Selesai', 'id']);
    expect(ops.t('queues.retry', { seconds: 5 })).toBe('Dicoba lagi setelah 5 detik');
  });

  test('of a language that the city adds come from its server, and are English where it has none', async () => {
    const answers: Record<string, Response> = { '/words/page.ar.json': Response.json({ dir: 'rtl', 'status.resolved': 'تم' }) };
    vi.stubGlobal('fetch', async (path: string) => answers[path] ?? new Response('', { status: 404 }));
    await setLanguage('ar');
    expect([t('status.resolved'), document.documentElement.dir, ops.t('story')]).toEqual(['تم', 'rtl', 'Story']);
  });

  test('of a part are there in the chosen language before it is drawn', async () => {
    await setLanguage('id');
    const part = await withWords('test', { 'a-test': 'a word' }, { id: async () => ({ default: { 'a-test': 'sebuah kata' } }) });
    expect([part.t('a-test'), part.t('status.resolved')]).toEqual(['sebuah kata', 'Selesai']);
    await setLanguage('en');
    expect(part.t('a-test')).toBe('a word');
  });

  test('of a part are those of the language that is chosen while they come', async () => {
    let come = () => {};
    const coming = new Promise<void>((resolve) => (come = resolve));
    await setLanguage('id');
    const part = withWords('test', { 'late-test': 'late' }, { id: () => coming.then(() => ({ default: { 'late-test': 'terlambat' } })) });
    await setLanguage('en');
    come();
    expect([(await part).t('late-test'), language.value]).toEqual(['late', 'en']);
  });

  test('of a part are English where they do not come', async () => {
    await setLanguage('id');
    const part = await withWords('test', { 'lost-test': 'lost' }, { id: () => Promise.reject(new TypeError('no network')) });
    expect([part.t('lost-test'), language.value]).toEqual(['lost', 'id']);
  });

  test.each([
    ['', ['fr-FR', 'id-ID', 'en'], 'id'],
    ['', ['fr-FR'], 'en'],
    ['en', ['id-ID'], 'en'],
    ['xx', ['id-ID'], 'id'],
    ['', ['in-ID', 'en'], 'id'],
    ['', ['IN'], 'id'],
    ['', ['ID_id'], 'id'],
  ])('chosen %j, browser %j: %s', (chosen, browser, want) => {
    preferences.language.value = chosen;
    vi.spyOn(navigator, 'languages', 'get').mockReturnValue(browser);
    expect(preferredLanguage()).toBe(want);
  });
});
