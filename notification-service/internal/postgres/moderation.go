package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// moderatedData is what a notification d, or the draft of one, shows once
// officials have moderated its report, as m of moderated_reports says. For a hidden
// report it says no more than that it is hidden: a notification about the
// moderation itself has no words of the report but the title.
const moderatedData = `(
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end)`

// moderatedBody is the same for the body of a webhook's delivery d.
const moderatedBody = `convert_to((convert_from(d.body, 'UTF8')::jsonb || jsonb_build_object('data',
  (convert_from(d.body, 'UTF8')::jsonb -> 'data')
    - case when m.hidden or d.report_version = any(m.redacted_notes) then '{note}'::text[] else '{}' end
    - case when m.hidden or m.words_removed then '{position,previous_position,asset}'::text[] else '{}' end
    || jsonb_build_object('report_title', m.title)))::text, 'UTF8')`

// moderateDeliveries rewrites the deliveries to webhooks about the reports $1, and
// cancels those that would tell of a report before it was hidden.
//
// Rows are locked in the order of their ids, here and wherever a statement changes
// several: two that met each other's rows in different orders would be a deadlock.
const moderateDeliveries = `
with ordered as materialized (
  select d.id from moderated_reports m join deliveries d
    on d.report_id = m.report_id and d.report_version < m.version and d.channel = 'webhook'
  where m.report_id = any($1) and (d.state = 'waiting' or $2)
  order by d.id for update of d
)
update deliveries d set body = ` + moderatedBody + `,
  state = case when m.hidden and d.kind <> 'report.moderated' and d.state in ('waiting', 'held') then 'cancelled' else d.state end,
  done_at = case when m.hidden and d.kind <> 'report.moderated' and d.state in ('waiting', 'held') then now() else d.done_at end
from moderated_reports m
where d.id in (select id from ordered) and d.report_id = m.report_id and d.report_version < m.version`

// moderate removes from stored data the words that officials have removed from
// reports, if the batch says so of any. It comes before the effect of the messages
// is noted: if the process dies in between, the next one does it once more.
//
// Nobody writes notifications or deliveries without a lock on moderated_reports,
// which conflicts with the exclusive one here. Rows that were being written when the
// lock was asked for are in the tables when it is granted; later writers find the
// moderation's rows. Readers, and backups, take no lock that would be waited for.
func (s *Effects) moderate(ctx context.Context, batch []Message) error {
	var reports []uuid.UUID
	var replace pgx.Batch
	for _, m := range batch {
		moderated := m.Value.Moderated
		if moderated == nil {
			continue
		}
		reports = append(reports, moderated.ReportID)
		replace.Queue(`
			insert into moderated_reports as r (report_id, version, hidden, title, redacted_notes, anonymous, withdrawn, words_removed)
			values ($1, $2, $3, $4, coalesce($5::bigint[], '{}'), $6, $7, $8)
			on conflict (report_id) do update set
			  version = greatest(r.version, excluded.version), anonymous = r.anonymous or excluded.anonymous,
			  withdrawn = r.withdrawn or excluded.withdrawn, words_removed = r.words_removed or excluded.words_removed,
			  hidden = case when r.version < excluded.version then excluded.hidden else r.hidden end,
			  title = case when r.version < excluded.version then excluded.title else r.title end,
			  redacted_notes = case when r.version < excluded.version then excluded.redacted_notes else r.redacted_notes end
			where r.version < excluded.version or excluded.anonymous and not r.anonymous or excluded.withdrawn and not r.withdrawn
				or excluded.words_removed and not r.words_removed`,
			moderated.ReportID, moderated.ReportVersion, moderated.Hidden, moderated.ReportTitle, moderated.RedactedNotes,
			moderated.Action == event.NameHidden || moderated.Action == event.WordsRemoved, moderated.Action == event.Withdrawn, moderated.Action == event.WordsRemoved)
	}
	if len(reports) == 0 {
		return nil
	}
	replace.Queue(`
		with ordered as materialized (
			select d.stream_id, d.seq from moderated_reports m join notifications d on d.report_id = m.report_id and d.report_version < m.version
			where m.report_id = any($1)
			order by d.stream_id, d.seq for update of d
		)
		update notifications d set type = case when m.hidden then 'report.moderated' else d.type end, data = `+moderatedData+`,
			withheld = d.withheld or m.anonymous
		from moderated_reports m, ordered o
		where d.stream_id = o.stream_id and d.seq = o.seq and d.report_id = m.report_id and d.report_version < m.version`, reports)
	replace.Queue(moderateDeliveries, reports, false)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Before the batch, and not in it: all statements of a batch are prepared first,
		// which locks the table for writing, and two that hold that lock would wait for
		// each other.
		if _, err := tx.Exec(ctx, `lock table moderated_reports in exclusive mode`); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, &replace).Close(); err != nil {
			return err
		}
		return hideNames(ctx, tx, batch)
	})
	if err != nil {
		return fmt.Errorf("moderate reports: %w", err)
	}
	// Deliveries that do not wait are not sent by themselves. No index leads to them,
	// so that this takes longer, and nobody is to wait for it.
	return pgpool.Exec(ctx, s.pool, "moderate deliveries", moderateDeliveries, reports, true)
}
