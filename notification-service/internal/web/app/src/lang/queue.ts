/** The words of the officials' workbench, beside those that are everywhere. */
import en from './queue.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('queue', en, { id: () => import('./queue.id.json') });
export type Word = Parameters<typeof t>[0];
