package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A counting context counts how often it was asked for its end, which a change
// does once it is handed in and waits for its outcome.
type counting struct {
	context.Context
	asked *atomic.Int64
}

func (c counting) Done() <-chan struct{} {
	c.asked.Add(1)
	return c.Context.Done()
}

// together makes changes on a store that is not running yet, runs it once all
// are handed in, and returns their outcomes.
func (f *fixture) together(n int, change func(ctx context.Context, i int) error) []error {
	f.t.Helper()
	return f.gather(n, f.start, change)
}

// gather makes changes at the same time, calls release when all are handed in,
// and returns their outcomes.
func (f *fixture) gather(n int, release func(), change func(ctx context.Context, i int) error) []error {
	f.t.Helper()
	ctx := counting{f.t.Context(), new(atomic.Int64)}
	outcomes := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { outcomes[i] = change(ctx, i) })
	}
	eventually.True(f.t, "the changes wait", func() bool { return ctx.asked.Load() == int64(n) })
	release()
	wg.Wait()
	return outcomes
}

// transactions returns how many of them wrote the outbox.
func (f *fixture) transactions() int {
	f.t.Helper()
	var n int
	if err := f.pool.QueryRow(f.t.Context(), `select count(distinct xmin::text) from outbox_messages`).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// create files a report of ann. A bad one breaks in the database.
func (f *fixture) create(ctx context.Context, bad bool) error {
	d := draft(report.Public)
	if bad {
		d.Category.ID = 4711
	}
	_, err := f.Create(ctx, filing(d, ann, time.Now()), nil)
	return err
}

// Creates that come while others commit go together; those that the database
// refuses harm none of them.
func TestRefusedChangesLeaveTheOthers(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]int{"none": nil, "one": {11}, "the last": {29}, "some": {3, 4, 17, 29}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := idleFixture(t)
			outcomes := f.together(30, func(ctx context.Context, i int) error {
				return f.create(ctx, slices.Contains(bad, i))
			})
			for i, err := range outcomes {
				if slices.Contains(bad, i) {
					wantKind(t, err, fault.Invalid)
				} else if err != nil {
					t.Errorf("create %d: %v", i, err)
				}
			}
			good := 30 - len(bad)
			if got := f.count(); got["reports"] != good || got["reporters"] != good || got["status_history"] != good || got["outbox_messages"] != good {
				t.Errorf("rows %v, want %d of each", got, good)
			}
			if got := f.transactions(); len(bad) == 0 && got > postgres.MaxCommits {
				t.Errorf("%d transactions, want at most %d", got, postgres.MaxCommits)
			}
		})
	}
}

// Votes on one report that come together lock it once. Each gets its own
// score and version, and one that the rules refuse gets the refusal.
func TestVotesOnOneReportGoTogether(t *testing.T) {
	t.Parallel()
	f := idleFixture(t)
	id := f.replica().file(ann, draft(report.Anonymous)).ID
	tallies := make([]report.Tally, 30)
	outcomes := f.together(30, func(ctx context.Context, i int) (err error) {
		voter := fmt.Sprintf("voter-%d", i)
		if i == 7 {
			voter = ann.ID
		}
		tallies[i], err = f.Vote(ctx, id, voter, report.Upvote)
		return err
	})
	wantKind(t, outcomes[7], report.OwnReport)
	if err := errors.Join(slices.Delete(slices.Clone(outcomes), 7, 8)...); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(tallies, func(a, b report.Tally) int { return int(a.Score - b.Score) })
	for i, got := range tallies[1:] { // the first is that of the refusal
		if want := (report.Tally{Score: int64(i + 1), Version: int64(i + 2)}); got != want {
			t.Errorf("tally %+v, want %+v", got, want)
		}
	}
	f.recount(id)
	f.checkOrder()
	if got := f.transactions(); got > 3 {
		t.Errorf("%d transactions, want that of the report, and one or two for all votes", got)
	}
}

// Votes on many reports that come together are looked up and written together,
// each by its id: a plan that reads a whole table would be made while the table
// is small, and kept while it grows.
func TestVotesOnManyReportsGoTogether(t *testing.T) {
	t.Parallel()
	const n = 40
	f := idleFixture(t)
	other, ids := f.replica(), make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = other.file(ann, draft(report.Public)).ID
	}
	if _, err := other.Vote(t.Context(), ids[0], "v", report.Downvote); err != nil {
		t.Fatal(err)
	}
	before, _ := other.scans()
	tallies := make([]report.Tally, n)
	outcomes := f.together(n, func(ctx context.Context, i int) (err error) {
		tallies[i], err = f.Vote(ctx, ids[i], "v", report.Upvote)
		return err
	})
	if err := errors.Join(outcomes...); err != nil {
		t.Fatal(err)
	}
	f.pool.Close() // a session says what it has read when it ends
	eventually.True(other.t, "the votes are counted", func() bool { _, byIndex := other.scans(); return byIndex >= n })
	if after, _ := other.scans(); after != before {
		t.Errorf("%d times a whole table was read", after-before)
	}
	for i, got := range tallies {
		want := report.Tally{Score: 1, Version: 2}
		if i == 0 {
			want.Version = 3
		}
		if got != want {
			t.Errorf("vote %d: tally %+v, want %+v", i, got, want)
		}
		other.recount(ids[i])
	}
	other.checkOrder()
	if got := other.transactions(); got > n+3 {
		t.Errorf("%d transactions, want one for each report and the first vote, and one or two for all votes", got)
	}
}

// scans returns how often a whole table was read, and how often votes were looked
// up by their index.
func (f *fixture) scans() (whole, byIndex int) {
	f.t.Helper()
	err := f.pool.QueryRow(f.t.Context(), `
		select sum(seq_scan), sum(idx_scan) filter (where relname = 'votes')
		from pg_stat_user_tables where relname in ('reports', 'reporters', 'votes')`).Scan(&whole, &byIndex)
	if err != nil {
		f.t.Fatal(err)
	}
	return whole, byIndex
}

// A resident who votes several times at once has one vote, and it counts once.
func TestSameVoterTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for name, votes := range map[string][]report.Vote{
		"all kinds":   {report.Upvote, report.Downvote, report.None},
		"withdrawals": {report.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := idleFixture(t)
			replica := f.replica()
			id := replica.file(ann, draft(report.Public)).ID
			if _, err := replica.Vote(t.Context(), id, bob.ID, report.Upvote); err != nil {
				t.Fatal(err)
			}
			outcomes := f.together(10, func(ctx context.Context, i int) error {
				_, err := f.Vote(ctx, id, bob.ID, votes[i%len(votes)])
				return err
			})
			if err := errors.Join(outcomes...); err != nil {
				t.Fatal(err)
			}
			f.recount(id)
			f.checkOrder()
		})
	}
}

// A caller that leaves while its change waits, in the queue or in a batch that
// has no connection yet, leaves nothing behind, and the others continue.
func TestCallerLeavesWhileItsChangeWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "pool_max_conns", "1")
	only, err := f.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave := make(chan struct{})
	left := make(chan error, 20)
	outcomes := f.gather(40, func() {
		close(leave)
		for range 20 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that left got %v, want that it left", err)
			}
		}
		only.Release()
	}, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			return f.create(ctx, false)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		go func() { <-leave; cancel() }()
		_, err := f.Create(counting{cancelled, ctx.(counting).asked}, filing(draft(report.Public), bob, time.Now()), nil)
		left <- err
		return nil
	})
	if err := errors.Join(outcomes...); err != nil {
		t.Error(err)
	}
	if got := f.count(); got["reports"] != 20 || got["outbox_messages"] != 20 {
		t.Errorf("rows %v, want 20 reports", got)
	}
}

// Reports that another session has locked, more of them than there are
// connections, hold up no change to another report.
func TestLockedReportsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "pool_max_conns", "6")
	locker := openFixture(t, f.database, "pool_max_conns", "30")
	free := f.file(ann, draft(report.Public)).ID
	locked := make([]uuid.UUID, 12)
	releases := make([]func(), len(locked))
	outcomes := make(chan error, len(locked))
	for i := range locked {
		locked[i] = f.file(ann, draft(report.Public)).ID
		releases[i] = locker.lock(locked[i])
		go func() {
			_, err := f.Vote(t.Context(), locked[i], bob.ID, report.Upvote)
			outcomes <- err
		}()
	}
	locker.waitForLock(3) // half of the connections
	if err := f.create(t.Context(), false); err != nil {
		t.Errorf("Create: %v", err)
	}
	if _, err := f.Vote(t.Context(), free, bob.ID, report.Upvote); err != nil {
		t.Errorf("Vote: %v", err)
	}
	if len(outcomes) > 0 {
		t.Errorf("%d votes on what is locked have ended", len(outcomes))
	}
	for _, release := range releases {
		release()
	}
	for _, id := range locked {
		if err := <-outcomes; err != nil {
			t.Errorf("Vote on what was locked: %v", err)
		}
		f.recount(id)
	}
}

// A batch that hangs in the database does not hold up what comes after it.
func TestSlowCommitDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	holder, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := draft(report.Public)
	if _, err := holder.Exec(t.Context(), `select from categories where id = $1 for update`, d.Category.ID); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error)
	go func() { slow <- f.create(t.Context(), false) }()
	f.waitForLock(1)
	d.Category = report.Category{ID: 1, Name: "Roads and potholes"}
	if _, err := f.Create(t.Context(), filing(d, ann, time.Now()), nil); err != nil {
		t.Errorf("Create beside one that hangs: %v", err)
	}
	select {
	case err := <-slow:
		t.Errorf("the create that should hang returned %v", err)
	default:
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Errorf("Create that hung: %v", err)
	}
}

// The server dies while a batch is being written: no change is made or reported
// as made, and all of them can be repeated.
func TestCrashInMidBatch(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	database := server.Create(migrations.Report)
	f, onlooker := openFixture(t, database, "pool_max_conns", "1"), openFixture(t, database)
	onlooker.start()
	id := onlooker.file(ann, draft(report.Public)).ID
	hold := onlooker.holdAnnouncements()
	vote := func(ctx context.Context, i int) error {
		_, err := f.Vote(ctx, id, fmt.Sprintf("voter-%d", i), report.Upvote)
		return err
	}
	outcomes := f.gather(20, func() {
		f.start()
		onlooker.waitForLock(1)
		server.Kill()
	}, vote)
	_ = hold.Rollback(t.Context()) // its server is gone
	for _, err := range outcomes {
		wantUnavailable(t, err)
	}
	server.Start()
	f.exec(`drop trigger hold on outbox_messages`)
	if got := f.count(); got["votes"] != 0 || got["outbox_messages"] != 1 {
		t.Errorf("rows %v, want no votes, and only the report announced", got)
	}
	for i := range outcomes {
		if err := vote(t.Context(), i); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	f.recount(id)
	f.checkOrder()
}

// A change that panics is answered, as are those that came with it, and the
// next ones are made.
func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	f := idleFixture(t, "pool_max_conns", "1")
	outcomes := f.together(3, func(ctx context.Context, i int) error {
		if i == 0 {
			return f.db.Panic(ctx)
		}
		return f.create(ctx, false)
	})
	if err := outcomes[0]; err == nil || !strings.Contains(err.Error(), "on purpose") || fault.KindOf(err) != "" {
		t.Errorf("the change that panicked: %v, want an error of ours that says so", err)
	}
	made := 0
	for _, err := range outcomes[1:] {
		if err == nil {
			made++
		}
	}
	if err := f.create(t.Context(), false); err != nil {
		t.Errorf("the next change: %v", err)
	}
	if got := f.count()["reports"]; got != made+1 {
		t.Errorf("%d reports, want the %d that were made, and the next", got, made)
	}
}

// Requests taken before the end are written; later ones are refused.
func TestRunEndsAfterWhatItHas(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.Report(t).Config().ConnString())
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.db.Run(ctx) }()
	hold := f.holdAnnouncements()
	created := make(chan error, 1)
	go func() { created <- f.create(t.Context(), false) }()
	f.waitForLock(1)
	end()
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil {
		t.Errorf("Create: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	wantKind(t, f.create(t.Context(), false), fault.Unavailable)
	if got := f.count()["reports"]; got != 1 {
		t.Errorf("%d reports, want 1", got)
	}
}
