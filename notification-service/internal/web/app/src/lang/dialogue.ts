/** The words between the city and a reporter: questions and answers, verdicts, photos of the finished work. */
import en from './dialogue.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t, tn } = await withWords('dialogue', en, { id: () => import('./dialogue.id.json') });
