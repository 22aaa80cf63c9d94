import { t, type Word } from '../lang/i18n';
import { href } from '../ui/router';

/** In place of a screen that is not there, or not for this user. */
export function NoPage({ title, text }: { title: Word; text?: Word }) {
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t(title)}</h1>
      {text && <p>{t(text)}</p>}
      <p>
        <a href={href('')}>{t('reports.all')}</a>
      </p>
    </div>
  );
}
