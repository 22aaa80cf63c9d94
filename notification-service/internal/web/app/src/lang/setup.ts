/** The words of an operator's first steps, beside those that are everywhere. */
import { withWords } from './i18n';
import en from './setup.en.json';

export * from './i18n';
export const { t, tn } = await withWords('setup', en, { id: () => import('./setup.id.json') });
