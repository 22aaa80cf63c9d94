import { isWord, t } from '../lang/console';

/**
 * Why a message became a dead letter, in the reader's language. The service
 * writes the reason down in English, once, and groups by it: here each has its
 * words. What a database or a program said stays as it is.
 */
export function cause(text: string): string {
  const whole = word(`cause.${text}`);
  if (whole) return whole;
  for (const [pattern, say] of patterns) {
    const found = pattern.exec(text);
    if (found) return say(found.slice(1));
  }
  return text;
}

const patterns: [RegExp, (parts: string[]) => string][] = [
  [
    /^body breaks the contract: (.+?): (?:must be|want) (.+)$/,
    ([field = '', must = '']) => t('cause.contract', { field, must: requirement(must) }),
  ],
  [/^body is not valid JSON at byte (\S+)$/, ([byte = '']) => t('cause.json', { byte })],
  [/^(\S+) is more than (\S+) days ahead$/, ([field = '', days = '']) => t('cause.ahead', { field, days })],
  [
    /^(\S+) is not a time: (?:must be|want) Unix milliseconds$/,
    ([field = '']) => t('cause.contract', { field, must: requirement('Unix milliseconds') }),
  ],
  [/^(.+) \(SQLSTATE (\w+)\)$/, ([words = '', code = '']) => `${word(`cause.${words}`) ?? words} (SQLSTATE ${code})`],
  [/^panic of type (.+) at (.+)$/, ([type = '', place = '']) => t('cause.panic', { type, place })],
];

/** The rule of the value. Messages of earlier versions said it in other words, and have keys of their own. */
function requirement(must: string): string {
  const among = /^one of (.+)$/.exec(must);
  return among ? t('must.one-of', { names: among[1] ?? '' }) : (word(`must.${must}`) ?? must);
}

/** The class of a failure: what helps against it. */
export function failureClass(name: string): string {
  return word(`failure-class.${name}`) ?? name;
}

/** Whether it can help to send a message again that failed in this way: nothing but an edit mends a permanent failure. */
export function helpsReplay(name: string | undefined): boolean {
  return name !== 'permanent';
}

/** Why a replay stopped by itself. */
export function stopReason(text: string): string {
  return word(`replay-stopped.${text}`) ?? text;
}

/** The act of an operator. */
export function act(name: string): string {
  return word(`act.${name}`) ?? name;
}

function word(key: string): string | undefined {
  return isWord(key) ? t(key) : undefined;
}
