package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// system is recorded as the official behind automatic changes. A migration
// inserts the row, with its name.
var system = report.Official{ID: "system"}

// queueDeadline queues the statement that replaces a report's deadline.
func queueDeadline(b *pgx.Batch, id uuid.UUID, d calendar.Deadline) {
	b.Queue(`
		update reports set clock_since = $2, clock_used = $3, target = $4, overdue_level = $5, due_at = $6,
			overdue_next_at = $7, waiting = $8
		where id = $1`, id, d.Since, d.Used, d.Target, d.Level, d.DueAt, d.NextAt, d.Waiting)
}

// stopClock queues the end of a report's time: it is closed, withdrawn or no longer disputed.
func stopClock(b *pgx.Batch, id uuid.UUID) {
	b.Queue(`
		update reports set clock_since = null, overdue_next_at = null, waiting = false, disputed_at = null
		where id = $1 and (clock_since is not null or waiting or disputed_at is not null)`, id)
}

// A timed is a report with its deadline, as of now.
type timed struct {
	report.Filing
	deadline calendar.Deadline
	now      time.Time
}

// timedWith selects the deadline of a report and the columns with these names.
func timedWith(names ...string) selection[timed] {
	return slices.Concat(of(func(t *timed) *report.Report { return &t.Report }, names...),
		deadlineOf(func(t *timed) *calendar.Deadline { return &t.deadline }),
		selection[timed]{{`clock_timestamp()`, func(t *timed) any { return &t.now }}})
}

var onlyTimed = timedWith("id")

// readDeadline returns the deadline of a locked report, with the calendar that it goes
// by and the present time.
func readDeadline(ctx context.Context, tx pgx.Tx, id uuid.UUID) (days calendar.Calendar, d calendar.Deadline, now time.Time, err error) {
	if days, err = settings.ReadCalendar(ctx, tx); err != nil {
		return days, d, now, err
	}
	t, err := pgpool.One(ctx, tx, "select deadline", pgx.ErrNoRows, onlyTimed.row, `select `+onlyTimed.sql()+` from reports r where r.id = $1`, id)
	return days, t.deadline, t.now, err
}
