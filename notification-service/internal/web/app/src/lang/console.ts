/** The words of the operators' console, beside those that are everywhere. */
import en from './console.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('console', en, { id: () => import('./console.id.json') });
export type Word = Parameters<typeof t>[0];

/** Whether the words for key differ by number: for keys that the server makes. */
export const isCounted = (key: string): key is Parameters<typeof tn>[0] => isWord(`${key}.other`);
