/** The words of the settings, beside those that are everywhere. */
import en from './settings.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn, isWord } = await withWords('settings', en, { id: () => import('./settings.id.json') });
export type Word = Parameters<typeof t>[0];
