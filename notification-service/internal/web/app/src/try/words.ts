/** The words of the tour. */
import { withWords } from '../lang/i18n';
import en from './en.json';

export const { t } = await withWords('try', en, { id: () => import('./id.json') });
