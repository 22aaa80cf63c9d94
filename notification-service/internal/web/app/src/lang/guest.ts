/** The words of reporting without an account, beside those that are everywhere. */
import en from './guest.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn } = await withWords('guest', en, { id: () => import('./guest.id.json') });
