import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { usePoll, type Polled } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Waiting } from './waiting';

interface Page {
  limit: number;
  cursor?: string;
}

/** Reads all pages that are shown again and again: things come and go while one looks at them. */
export function usePages<T>(limit: number, read: (page: Page) => Promise<{ items: T[]; next_cursor?: string }>, deps: unknown[] = []) {
  const [pages, setPages] = useState(1);
  const found = usePoll(async () => {
    const items: T[] = [];
    let cursor: string | undefined;
    for (let page = 0; page === 0 || (cursor && page < pages); page++) {
      const next = await read({ limit, ...(cursor && { cursor }) });
      items.push(...next.items);
      cursor = next.next_cursor;
    }
    return { items, pages, more: cursor !== undefined };
  }, [...deps, pages]);
  return { ...found, showMore: () => setPages(pages + 1) };
}

interface Props<T> {
  found: Polled<{ items: T[]; more?: boolean }> & { showMore?(): void };
  /** Said where there is nothing. */
  none: ComponentChildren;
  children(each: T): ComponentChildren;
}

/** A row for each that was found, and the way to more; or why there is none. */
export function Rows<T>({ found: { value, error, refresh, showMore }, none, children }: Props<T>) {
  return (
    <>
      {value ? <Fault error={error} retry={refresh} /> : <Waiting error={error} retry={refresh} />}
      {value?.items.length === 0 && <p class="empty">{none}</p>}
      <ul class="rows">{value?.items.map(children)}</ul>
      {value?.more && (
        <button type="button" class="wide" onClick={showMore}>
          {t('more')}
        </button>
      )}
    </>
  );
}
