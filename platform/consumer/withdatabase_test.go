package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/failure"
)

// A pingJournal answers pings as the test says; it has nothing else.
type pingJournal struct {
	journal
	answer func(context.Context) error
	writes error // why nothing can be written
}

func (j pingJournal) ping(ctx context.Context) error { return j.answer(ctx) }

func (j pingJournal) writable(context.Context) error { return j.writes }

func answers(context.Context) error { return nil }

func never(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// after answers so late.
func after(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awayFor answers nothing for so long, and everything from then on.
func awayFor(d time.Duration) func(context.Context) error {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every synctest
	return func(ctx context.Context) error { return after(time.Until(begin.Add(d)))(ctx) }
}

// An outage costs no attempt, also if it ends just when a transaction gives up,
// and however slow the machine is. What fails beside a database that answers
// is the message's own failure.
func TestWithDatabaseTellsAwayFromFailing(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	pgError := func(code string) error { return &pgconn.PgError{Code: code} }
	timesOut := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(after time.Duration, err error) func(context.Context) error {
		return func(context.Context) error { <-time.After(after); return err }
	}
	for _, tt := range []struct {
		name string
		ping func(context.Context) error
		fn   func(context.Context) error // the first time; then it succeeds
		away bool
	}{
		{"no answer until the deadline", never, timesOut, true},
		{"the outage ends just before the deadline", awayFor(timeout - time.Second), timesOut, true},
		{"the outage ends just after the deadline", awayFor(timeout + time.Second), timesOut, true},
		{"the outage ends within a third of the time", awayFor(timeout / 3), timesOut, true},
		{"a slow machine", after(timeout/4 + time.Second), timesOut, true},
		{"deadline beside answers", answers, timesOut, false},
		{"deadline beside late answers", after(timeout / 20), timesOut, false},
		{"lock timeout beside answers", answers, fails(timeout/2, pgError("55P03")), false},
		{"lock timeout after a freeze", never, fails(timeout/2, pgError("55P03")), true},
		{"statement timeout after a freeze", never, fails(8*time.Second, pgError("57014")), true},
		{"lock timeout at once", never, fails(0, pgError("55P03")), false},
		{"unknown error at once", never, fails(0, errors.New("odd")), false},
		{"unknown error after a freeze", never, fails(timeout/2, errors.New("odd")), true},
		{"refused data after a freeze", never, fails(timeout/2, pgError("23505")), false},
		{"shutting down", answers, fails(0, pgError("57P01")), true},
		{"the schema is older than the program: table", answers, fails(0, pgError("42P01")), true},
		{"the schema is older than the program: column", answers, fails(0, pgError("42703")), true},
		{"a right is missing", answers, fails(0, pgError("42501")), true},
		{"the server refuses writes to avoid a wraparound", answers, fails(0, pgError("54000")), true},
		{"an object is not in the state for it", answers, fails(0, pgError("55000")), true},
		{"an index is missing", answers, fails(0, pgError("42P10")), true},
		{"statements are cancelled", answers, fails(0, pgError("57014")), true},
		{"a sequence is at its end", answers, fails(0, pgError("2200H")), true},
		{"a number exists", answers, fails(0, &pgconn.PgError{Code: "23505", ConstraintName: "deliveries_pkey"}), true},
		{"a trigger refuses", answers, fails(0, pgError("P0001")), true},
		{"a code of a later version", answers, fails(0, pgError("ZZ999")), true},
		{"a value is too large", answers, fails(0, pgError("22003")), false},
		{"a key does not exist", answers, fails(0, pgError("23503")), false},
		{"the effect's own time is over, on a slow machine", never, fails(timeout, &failure.Error{Class: failure.Transient, Err: context.DeadlineExceeded}), false},
		{"the effect knows that something else is away", answers, fails(0, &failure.Error{Class: failure.Away}), true},
		{"panic", answers, func(context.Context) error { panic("canary") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &handler{store: pingJournal{answer: tt.ping}, breaker: testBreaker(), timeout: timeout}
				calls := 0
				err := h.withDatabase(t.Context(), func(ctx context.Context, probe bool) error {
					if calls++; calls > 1 {
						if !probe {
							t.Error("not tried by a probe")
						}
						return nil
					}
					return tt.fn(ctx)
				})
				if tt.away && (err != nil || calls != 2) {
					t.Errorf("error %v after %d calls, want none after 2", err, calls)
				}
				if !tt.away && (err == nil || failure.Classify(err) == failure.Away || calls != 1) {
					t.Errorf("error %v after %d calls, want one after 1", err, calls)
				}
				if !h.breaker.isClosed() {
					t.Error("the breaker is open at the end")
				}
			})
		})
	}
}

// A failure while nothing can be written is not the message's fault, unless it is
// about the data.
func TestNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for code, away := range map[string]bool{"55P03": true, "40001": true, "23514": false} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &handler{store: pingJournal{answer: answers, writes: errors.New("locked")}, breaker: testBreaker(), timeout: time.Second}
				failures := 0
				err := h.withDatabase(t.Context(), func(context.Context, bool) error {
					if failures++; failures <= immediateTries {
						return &pgconn.PgError{Code: code}
					}
					return nil
				})
				if away != (err == nil) {
					t.Errorf("error %v, away %t, want %t", err, err == nil, away)
				}
			})
		})
	}
}

func TestWithDatabaseRetriesBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handler{store: pingJournal{answer: answers}, breaker: testBreaker(), timeout: time.Second}
		calls, began := 0, time.Now()
		err := h.withDatabase(t.Context(), func(context.Context, bool) error {
			calls++
			return &pgconn.PgError{Code: "40001"}
		})
		if took := time.Since(began); err == nil || calls != immediateTries || took > 250*time.Millisecond {
			t.Errorf("error %v after %d calls in %s, want one after %d within 250ms", err, calls, took, immediateTries)
		}
	})
}

func TestWithDatabaseStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handler{store: pingJournal{answer: answers}, breaker: testBreaker(), timeout: time.Second}
		h.breaker.record(false, true)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, stop)
		err := h.withDatabase(ctx, func(context.Context, bool) error { t.Error("used although it stops"); return nil })
		if !errors.Is(err, errStopped) {
			t.Errorf("error %v, want errStopped", err)
		}
	})
}
