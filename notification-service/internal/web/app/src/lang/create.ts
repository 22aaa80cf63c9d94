/** The words of the form that not every report needs: of addresses that open it, and of a photo to begin with. */
import en from './create.en.json';
import { withWords } from './i18n';

export * from './i18n';
export const { t } = await withWords('create', en, { id: () => import('./create.id.json') });
