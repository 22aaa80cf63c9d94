import { useRef, useState } from 'preact/hooks';

import { must, notificationService, type DeadLetter } from '../../api/client';
import { t, tn } from '../../lang/console';
import { cause } from '../../ui/cause';
import { Copy } from '../../ui/copy';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { go, href, route } from '../../ui/router';
import { Time } from '../../ui/time';
import { readsOnly } from './acts';
import { Reason } from './reason';
import { ReplayForm } from './replay-form';
import { ReportLink } from './report-link';
import { usePages } from './rows';
import { selectionOf } from './selection';
import { Waiting } from './waiting';

const PAGE = 100;

/** The dead letters that the address narrows to, newest first. Some can be chosen and worked on together. */
export function DeadLetterList() {
  const query = Object.fromEntries(route.value.query) as Query;
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const found = usePages(PAGE, (page) => read(query, page), [JSON.stringify(query)]);
  // Nothing moves while somebody chooses.
  const shown = useRef(found.value);
  if (chosen.size === 0 || shown.current?.pages !== found.value?.pages) shown.current = found.value;
  const letters = shown.current?.items ?? [];
  const open = readsOnly() ? [] : letters.filter(({ state }) => state === 'open');
  const choose = (ids: number[], on: boolean) => {
    const next = new Set(chosen);
    for (const id of ids) next[on ? 'add' : 'delete'](id);
    setChosen(next);
  };
  return (
    <div class="stack">
      <a class="back" href={href('ops/dead-letters')}>
        <Icon name="back" /> {t('dead.groups')}
      </a>
      {query.error_group && <h2>{cause(query.error_group)}</h2>}
      <Search query={query} />
      {found.value ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {found.value && letters.length === 0 && (
        <p class="empty">
          {t('dead.none')} <a href={href('ops/dead-letters', { state: 'all' })}>{t('dead.all')}</a>
        </p>
      )}
      {open.length > 0 && (
        <Chosen
          letters={open.filter(({ id }) => chosen.has(id))}
          all={open.length}
          onAll={(on) =>
            choose(
              open.map(({ id }) => id),
              on,
            )
          }
          onDone={() => {
            setChosen(new Set());
            found.refresh();
          }}
        />
      )}
      <ul class="rows">
        {letters.map((letter) => (
          <Row
            key={letter.id}
            letter={letter}
            chosen={chosen.has(letter.id)}
            onChoose={open.includes(letter) ? (on) => choose([letter.id], on) : undefined}
          />
        ))}
      </ul>
      {found.value?.more && (
        <button type="button" class="wide" onClick={found.showMore}>
          {t('more')}
        </button>
      )}
    </div>
  );
}

interface RowProps {
  letter: DeadLetter;
  chosen: boolean;
  /** Absent where nothing can be done any more. */
  onChoose: ((on: boolean) => void) | undefined;
}

function Row({ letter, chosen, onChoose }: RowProps) {
  return (
    <li class="choosable">
      {onChoose && (
        <input
          type="checkbox"
          aria-label={t('dead.choose', { id: String(letter.id) })}
          checked={chosen}
          onChange={(e) => onChoose(e.currentTarget.checked)}
        />
      )}
      <div>
        <a href={href(`ops/dead-letters/${letter.id}`)}>{cause(letter.error)}</a>
        <p class="meta">
          <span class="state" data-state={letter.state}>
            {t(`dead.state.${letter.state}`)}
          </span>
          <span>{letter.type}</span>
          <span>{letter.queue}</span>
          <Time at={letter.failed_at} full seconds />
        </p>
        <p class="meta">
          <span>#{letter.id}</span>
          <Copy text={letter.message_id} />
          <ReportLink letter={letter} />
        </p>
      </div>
    </li>
  );
}

/** The acts on the chosen letters together. */
function Chosen({ letters, all, onAll, onDone }: { letters: DeadLetter[]; all: number; onAll(on: boolean): void; onDone(): void }) {
  const ids = letters.map(({ id }) => id);
  const [open, setOpen] = useState<'replay' | 'discard'>();
  const selection = { ids };
  const discard = (reason: string) => must(notificationService.POST('/admin/dlq/discard', { body: { selection, reason } }));
  const close = () => {
    setOpen(undefined);
    onDone();
  };
  return (
    <div class="bar spread chosen">
      <label class="check">
        <input type="checkbox" checked={ids.length === all} onChange={(e) => onAll(e.currentTarget.checked)} />
        <span role="status">{ids.length > 0 ? tn('dead.chosen', ids.length) : t('dead.choose-all')}</span>
      </label>
      <div class="bar">
        <button type="button" disabled={ids.length === 0} aria-haspopup="dialog" onClick={() => setOpen('replay')}>
          {t('replay')}
        </button>
        <button type="button" class="danger-quiet" disabled={ids.length === 0} aria-haspopup="dialog" onClick={() => setOpen('discard')}>
          {t('discard')}
        </button>
      </div>
      {open === 'replay' && <ReplayForm selection={selection} count={ids.length} chosen={letters} onClose={close} />}
      {open === 'discard' && <Reason title={tn('dead.discard', ids.length)} onSubmit={discard} onClose={close} />}
    </div>
  );
}

/** Narrows the list by words, ids and times. They stand in the address. */
export function Search({ query }: { query: Query }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const entered = new FormData(event.currentTarget as HTMLFormElement);
    const value = (name: string) => (entered.get(name) as string).trim(); // of an input other than a file
    const time = (name: string) => (value(name) === '' ? '' : new Date(value(name)).toISOString());
    const wanted: Query = { ...query, state: query.state ?? 'all', text: value('text'), from: time('from'), to: time('to') };
    go('ops/dead-letters', Object.fromEntries(Object.entries(wanted).flatMap(([name, said]) => (said ? [[name, said]] : []))));
  };
  return (
    <form class="bar search" role="search" onSubmit={submit}>
      <label class="field grows">
        <span>{t('dead.search')}</span>
        <input type="search" name="text" maxLength={200} defaultValue={query.text ?? ''} />
      </label>
      <label class="field">
        <span>{t('dead.from')}</span>
        <input type="datetime-local" name="from" defaultValue={local(query.from)} />
      </label>
      <label class="field">
        <span>{t('dead.to')}</span>
        <input type="datetime-local" name="to" defaultValue={local(query.to)} />
      </label>
      <button>{t('dead.search-button')}</button>
    </form>
  );
}

/** A time of the address as the input has it: of the reader's clock, to the minute. */
function local(time: string | undefined): string {
  if (!time || Number.isNaN(Date.parse(time))) return '';
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

type Query = Record<string, string | undefined>;

function read(asked: Query, page: { limit: number; cursor?: string }) {
  const query = {
    ...page,
    ...selectionOf(asked),
    ...(asked.state && asked.state !== 'all' && { state: asked.state as DeadLetter['state'] }),
    ...(asked.text && { text: asked.text }),
    ...(asked.from && { from: asked.from }),
    ...(asked.to && { to: asked.to }),
  };
  return must(notificationService.GET('/admin/dlq/messages', { params: { query } }));
}
