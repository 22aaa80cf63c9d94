/** The words of officials about what others see of a report, beside those that are everywhere. */
import en from './moderation.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('moderation', en, { id: () => import('./moderation.id.json') });
export type Word = Parameters<typeof t>[0];
