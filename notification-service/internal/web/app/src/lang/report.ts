/** The words of what one does at a report: comments, notices of abuse, hiding a name or a part of a photo, withdrawing, or voting for one that is there already. */
import en from './report.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn } = await withWords('report', en, { id: () => import('./report.id.json') });
