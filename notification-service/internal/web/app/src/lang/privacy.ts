/** The words about who sees what of a report, beside those that are everywhere. */
import en from './privacy.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t } = await withWords('privacy', en, { id: () => import('./privacy.id.json') });
