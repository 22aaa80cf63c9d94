package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

const (
	// overdueRows is how many reports become overdue in one transaction.
	overdueRows = 200
	// deadlineRows is how many reports a step of the job for deadlines
	// examines. The job leaves half of the time to others.
	deadlineRows = 5000
)

// Deadlines are the times by which the city intends to finish its work on
// reports.
type Deadlines struct{ db *DB }

// NewDeadlines returns the deadlines in db.
func NewDeadlines(db *DB) *Deadlines { return &Deadlines{db} }

// OverdueJob returns the job that finds overdue reports and notifies the
// officials. It needs no catching up: its next run finds the reports of missed
// runs, level by level.
func (s *Deadlines) OverdueJob() schedule.Job {
	return schedule.Job{Name: "overdue", When: schedule.Every(time.Minute), Step: s.overdueStep}
}

var overdue = timedWith("id", "title", "version", "visibility", "latitude", "longitude", "category_id", "category")

// overdueStep raises the level of some reports, with an event and an act for
// officials. Reports that another transaction has locked are left to the next
// minute.
func (s *Deadlines) overdueStep(ctx context.Context, tx pgx.Tx, _ schedule.Run) (schedule.Progress, error) {
	days, err := settings.ReadCalendar(ctx, tx)
	if err != nil {
		return schedule.Progress{}, err
	}
	found, err := pgpool.Collect(ctx, tx, "find overdue reports", overdue.row, `
		select `+overdue.sql()+`
		from reports r join categories c on c.id = r.category_id
		where r.overdue_next_at <= now() and (r.status in ('pending', 'in_progress') or r.disputed_at is not null)
			and r.duplicate_of is null and `+unhiddenSQL+`
		order by r.overdue_next_at limit $1 for no key update of r skip locked`, overdueRows)
	if err != nil {
		return schedule.Progress{}, err
	}
	if len(found) == 0 {
		return schedule.Progress{Last: true}, nil
	}
	w := s.db.newWrites()
	for _, l := range found {
		raised := days.Raise(l.deadline)
		message := &event.ReportOverdue{
			Subject: subject(&l.Filing, l.Version, l.now), CategoryID: l.Category.ID, CategoryName: l.Category.Name,
			DueAt: l.deadline.DueAt.Unix(), Level: int32(raised.Level),
		}
		if err := w.enqueueFor(message, "", service.TraceFrom(ctx)); err != nil { // for no resident
			return schedule.Progress{}, err
		}
		queueDeadline(&w.others, l.ID, raised)
		w.record(actRow{reportID: l.ID, by: system, kind: report.BecameOverdue, text: strconv.Itoa(raised.Level)})
	}
	if err := w.send(ctx, tx); err != nil {
		return schedule.Progress{}, fmt.Errorf("raise overdue reports: %w", err)
	}
	return schedule.Progress{
		Done: int64(len(found)), Last: len(found) < overdueRows,
		AfterCommit: func() { w.wake(s.db.committer.committed) },
	}, nil
}

// DeadlinesJob returns the job that starts the clocks of open reports that have
// none although their category has a target: the target is younger than the
// report, or an earlier version without targets took the report. Their time
// begins now, so that a city that sets its first targets does not receive
// alerts about its whole past.
func (s *Deadlines) DeadlinesJob() schedule.Job {
	return schedule.Job{Name: "deadlines", When: schedule.Every(24 * time.Hour), Step: s.deadlinesStep}
}

func (s *Deadlines) deadlinesStep(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
	began := time.Now()
	days, err := settings.ReadCalendar(ctx, tx)
	if err != nil {
		return schedule.Progress{}, err
	}
	after, end := uuid.Nil, uuid.Max
	if run.Cursor != nil {
		if err := json.Unmarshal(run.Cursor, &after); err != nil {
			return schedule.Progress{}, fmt.Errorf("read cursor: %w", err)
		}
	}
	err = tx.QueryRow(ctx, `select id from reports where id > $1 order by id offset $2 limit 1`, after, deadlineRows-1).Scan(&end)
	last := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !last {
		return schedule.Progress{}, fmt.Errorf("list reports: %w", err)
	}
	// Reports that another transaction has locked are left to the next run.
	var writes pgx.Batch
	var id uuid.UUID
	var target time.Duration
	var now time.Time
	err = pgpool.ForEach(ctx, tx, "find reports without a deadline", []any{&id, &target, &now}, func() error {
		queueDeadline(&writes, id, days.Begin(target, now))
		return nil
	}, `
		select r.id, c.target_hours * interval '1 hour', clock_timestamp()
		from reports r join categories c on c.id = r.category_id
		where r.id > $1 and r.id <= $2 and r.status in ('pending', 'in_progress') and not r.waiting
			and r.target = '0' and c.target_hours is not null and r.withdrawn_at is null
		for no key update of r skip locked`, after, end)
	if err != nil {
		return schedule.Progress{}, err
	}
	if err := send(ctx, tx, "set deadlines", &writes); err != nil {
		return schedule.Progress{}, err
	}
	cursor, err := json.Marshal(end)
	if err != nil {
		return schedule.Progress{}, fmt.Errorf("write cursor: %w", err)
	}
	return schedule.Progress{Cursor: cursor, Done: int64(writes.Len()), Pause: time.Since(began), Last: last}, nil
}
