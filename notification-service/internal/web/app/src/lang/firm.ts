/** The words for firms that repair, beside those that are everywhere. */
import en from './firm.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('firm', en, { id: () => import('./firm.id.json') });
export type Word = Parameters<typeof t>[0];
