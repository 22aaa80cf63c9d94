/** The words after filing a report, beside those that are everywhere. */
import en from './receipt.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('receipt', en, { id: () => import('./receipt.id.json') });
export type Word = Parameters<typeof t>[0];
