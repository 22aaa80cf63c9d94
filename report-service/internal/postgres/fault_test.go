package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// lock holds a report's row until the test lets it go.
func (f *fixture) lock(id uuid.UUID) (release func()) {
	f.t.Helper()
	tx, err := f.pool.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(f.t.Context())) })
	if _, err := tx.Exec(f.t.Context(), `select from reports where id = $1 for update`, id); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(f.t.Context()); err != nil {
			f.t.Error(err)
		}
	}
}

// A client that leaves while its vote is being written neither stops it half
// way nor costs a connection.
func TestClientLeavesInMidChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.file(ann, draft(report.Public)).ID
	hold := f.holdAnnouncements()

	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Vote(ctx, id, bob.ID, report.Upvote)
		done <- err
	}()
	f.waitForLock(1)
	opened := f.pool.Stat().NewConnsCount()
	leave()
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Vote: %v; want it done", err)
	}
	if view, err := f.Get(t.Context(), id, report.User{ID: bob.ID}); err != nil || view.Score != 1 || view.MyVote != report.Upvote {
		t.Errorf("the report is %+v, error %v; want the vote on it", view, err)
	}
	if got := f.pool.Stat().NewConnsCount(); got != opened {
		t.Errorf("%d connections were opened again", got-opened)
	}
}

// A client that leaves while its vote waits for the lock on the report leaves
// nothing behind: it cannot know that the vote counts, and may have cast
// another since.
func TestClientLeavesWhileTheReportIsLocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.file(ann, draft(report.Public)).ID
	release := f.lock(id)

	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Vote(ctx, id, bob.ID, report.Upvote)
		done <- err
	}()
	f.waitForLock(1)
	opened := f.pool.Stat().NewConnsCount()
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Vote: %v, want that the client left", err)
	}
	release()
	if _, err := f.Vote(t.Context(), id, "eve", report.Downvote); err != nil {
		t.Errorf("another vote: %v", err)
	}
	if got := f.count(); got["votes"] != 1 || got["outbox_messages"] != 2 {
		t.Errorf("rows %v, want the other vote alone", got)
	}
	if got := f.pool.Stat().NewConnsCount(); got != opened {
		t.Errorf("%d connections were opened again", got-opened)
	}
}

func TestClientThatLeftBeforeChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.file(ann, draft(report.Public)).ID
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.Vote(ctx, id, bob.ID, report.Upvote); err == nil {
		t.Error("Vote succeeded")
	}
	if got := f.count()["votes"]; got != 0 {
		t.Errorf("%d votes", got)
	}
}

// A row that stays locked costs a refusal that invites to try again, and the
// connection is good for the next.
func TestLockedRowIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "lock_timeout", "50ms", "pool_max_conns", "2")
	id := f.file(ann, draft(report.Public)).ID
	release := f.lock(id)
	for range 3 {
		_, err := f.Vote(t.Context(), id, bob.ID, report.Upvote)
		wantUnavailable(t, err)
	}
	release()
	if _, err := f.Vote(t.Context(), id, bob.ID, report.Upvote); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestRefusalFreesTheRow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "pool_max_conns", "2")
	id := f.file(ann, draft(report.Public)).ID
	for range 5 { // more than there are connections
		_, err := f.Vote(t.Context(), id, ann.ID, report.Upvote)
		wantKind(t, err, report.OwnReport)
		_, err = f.Vote(t.Context(), uuid.New(), bob.ID, report.Upvote)
		wantKind(t, err, fault.NotFound)
	}
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select from reports where id = $1 for update nowait`, id)
		return err
	})
	if err != nil {
		t.Errorf("the row is still locked: %v", err)
	}
}

// While the server is away, requests fail as unavailable; once it is back, the same
// pool serves again.
func TestServerAwayAndBack(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	f := openFixture(t, server.Create(migrations.Report))
	f.start()
	id := f.file(ann, draft(report.Public)).ID
	server.Kill()
	_, err := f.Vote(t.Context(), id, bob.ID, report.Upvote)
	wantUnavailable(t, err)
	_, err = f.Get(t.Context(), id, report.User{})
	wantUnavailable(t, err)
	_, err = f.List(t.Context(), report.Filter{}, nil, 10, "")
	wantUnavailable(t, err)

	server.Start()
	eventually.True(f.t, "the pool serves again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		_, err := f.Vote(ctx, id, bob.ID, report.Upvote)
		return err == nil
	})
	f.recount(id)
}
