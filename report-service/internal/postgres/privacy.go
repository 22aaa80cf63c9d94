package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// namelessSQL sets the payload of messages to what they would have been, had the report
// been anonymous from the beginning.
const namelessSQL = `payload = (payload - 'reporter_id' - 'reporter_name')
	|| case when payload ? 'privacy_level' then '{"privacy_level": "anonymous"}'::jsonb else '{}' end`

// HideName makes a report anonymous, which its reporter alone may ask for, and returns
// it as the reporter sees it. Everybody else gets ErrNotFound. The reporter's comments
// on it become anonymous, too: their name would say whose report it is.
//
// It is one transaction, so that nothing has the name once it is answered: neither the
// rows that are read, nor stored answers, nor messages that are still to be published.
// Those that were published are left to NamesJob, because no index leads to them.
// notification-service does its part when it gets the message.
func (s *Reports) HideName(ctx context.Context, id uuid.UUID, reporter string) (report.View, error) {
	var view report.View
	err := s.db.change(ctx, id, report.Scope{}, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		if reporter == "" || l.Reporter.ID != reporter {
			return report.ErrNotFound
		}
		if l.HideName(time.Now()) {
			if err := queueHiddenName(ctx, tx, l, reporter, w); err != nil {
				return err
			}
		} else {
			w.doneBefore = true
		}
		queueView(&w.others, reporter, id, &view)
		return nil
	})
	return view, err
}

// queueHiddenName queues what changes with the name of l, which its reporter has hidden.
func queueHiddenName(ctx context.Context, tx pgx.Tx, l *lockedReport, reporter string, w *writeBatch) error {
	redacted, err := redactedNotes(ctx, tx, l.ID)
	if err != nil {
		return err
	}
	for _, sql := range []string{
		`update reports set privacy_level = 'anonymous' where id = $1`,
		`update reporters set reporter_name = '' where report_id = $1`,
		`update idempotency_keys set response_body = convert_to(((convert_from(response_body, 'UTF8')::jsonb - 'reporter_name')
			|| '{"privacy_level": "anonymous"}')::text, 'UTF8')
		where convert_from(response_body, 'UTF8')::jsonb ->> 'id' = $1::uuid::text`,
	} {
		w.others.Queue(sql, l.ID)
	}
	const own = `select c.id from comments c join commenters a on a.comment_id = c.id where c.report_id = $1 and a.commenter_id = $2`
	for _, sql := range []string{
		`update idempotency_keys set response_body = convert_to((convert_from(response_body, 'UTF8')::jsonb - 'author_name')::text, 'UTF8')
		where convert_from(response_body, 'UTF8')::jsonb ->> 'id' = any(array(select id::text from (` + own + `) c))`,
		`update comments set anonymous = true where not anonymous and id in (` + own + `)`,
		`update commenters set commenter_name = '' where comment_id in (` + own + `)`,
	} {
		w.others.Queue(sql, l.ID, reporter)
	}
	w.others.Queue(`update outbox_messages set `+namelessSQL+` where report_id = $1 and shard = $2 and status = 'pending'`, l.ID, shards.Of(l.ID))
	w.others.Queue(`update outbox_messages set `+namelessSQL+` where report_id = $1 and status = 'failed'`, l.ID)
	w.others.Queue(`insert into hidden_names (report_id) values ($1) on conflict do nothing`, l.ID)
	w.update(l)
	return w.enqueue(reportModerated(&l.Filing, event.NameHidden, redacted), service.TraceFrom(ctx))
}

// HideNames hides the names on up to limit reports of a person who has asked nobody to,
// because they are erased, in the transaction that erases them. It returns how many it found.
func (db *DB) HideNames(ctx context.Context, tx pgx.Tx, userID string, limit int) (int, error) {
	named, err := pgpool.Collect(ctx, tx, "find named reports", pgx.RowTo[uuid.UUID], `
		select r.id from reports r join reporters p on p.report_id = r.id
		where p.reporter_id = $1 and r.privacy_level <> 'anonymous' order by r.id limit $2`, userID, limit)
	if err != nil {
		return 0, err
	}
	w := db.newWrites()
	for _, id := range named {
		l, err := lockReport(ctx, tx, id, report.Scope{})
		if err != nil {
			return 0, err
		}
		if l.HideName(time.Now()) {
			if err := queueHiddenName(ctx, tx, l, userID, w); err != nil {
				return 0, err
			}
		}
	}
	return len(named), w.send(ctx, tx)
}

// namesAtOnce is from how many reports the job takes the names by one scan.
const namesAtOnce = 1000

// NamesJob returns the job that takes hidden names out of messages that were published
// already. Only a broker that lost its disk would get them once more.
func (s *Reports) NamesJob() schedule.Job {
	return schedule.Job{Name: "hidden_names", When: schedule.Every(time.Minute), Step: s.namesStep}
}

func (s *Reports) namesStep(ctx context.Context, tx pgx.Tx, _ schedule.Run) (schedule.Progress, error) {
	began := time.Now()
	ids, err := pgpool.Collect(ctx, tx, "select hidden names", pgx.RowTo[uuid.UUID],
		`delete from hidden_names where report_id in (
			select report_id from hidden_names limit $1 for update skip locked) returning report_id`, namesAtOnce)
	if err != nil {
		return schedule.Progress{}, err
	}
	if len(ids) == 0 {
		return schedule.Progress{Last: true}, nil
	}
	err = pgpool.Exec(ctx, tx, "change messages", `update outbox_messages set `+namelessSQL+`
		where report_id = any($1) and payload ?| '{reporter_id,reporter_name}'`, ids)
	if err != nil {
		return schedule.Progress{}, err
	}
	return schedule.Progress{Done: int64(len(ids)), Pause: time.Since(began), Last: len(ids) < namesAtOnce}, nil
}
