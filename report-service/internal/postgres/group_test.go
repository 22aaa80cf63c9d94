package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// crowded has one connection, so that changes gather while it is taken.
func crowded(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, "pool_max_conns", "1")
}

// take holds the only connection until the test lets it go.
func (f *fixture) take() (release func()) {
	f.t.Helper()
	conn, err := f.pool.Acquire(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var once sync.Once
	release = func() { once.Do(conn.Release) }
	f.t.Cleanup(release)
	return release
}

// gather makes changes at the same time, and returns their outcomes once all
// are made. It calls release when so many of them wait.
func (f *fixture) gather(n, waiting int, release func(), change func(i int) error) []error {
	f.t.Helper()
	outcomes := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { outcomes[i] = change(i) })
	}
	f.eventually("the changes wait", func() bool { return f.Waiting() == waiting })
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
func (f *fixture) create(bad bool) error {
	d := draft(report.Public)
	if bad {
		d.Category.ID = 4711
	}
	_, err := f.Create(f.t.Context(), filing(d, ann, time.Now()), nil)
	return err
}

// Creates that come while others commit go together; those that the database
// refuses harm none of them.
func TestFailingNeighbourHarmsNobody(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]int{"none": nil, "one": {11}, "the last": {29}, "some": {3, 4, 17, 29}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := crowded(t)
			outcomes := f.gather(30, 30-postgres.MaxCommits, f.take(), func(i int) error {
				return f.create(slices.Contains(bad, i))
			})
			for i, err := range outcomes {
				if slices.Contains(bad, i) {
					wantKind(t, err, report.Invalid)
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

// Votes on one report that come together lock it once. Each is told its own
// score and version, and one that the rules refuse is told so.
func TestVotesOnOneReportGoTogether(t *testing.T) {
	t.Parallel()
	f := crowded(t)
	id := f.file(ann, draft(report.Anonymous)).ID
	tallies := make([]postgres.Tally, 30)
	outcomes := f.gather(30, 29, f.take(), func(i int) (err error) {
		voter := fmt.Sprintf("voter-%d", i)
		if i == 7 {
			voter = ann.ID
		}
		tallies[i], err = f.Vote(t.Context(), id, voter, report.Upvote)
		return err
	})
	wantKind(t, outcomes[7], report.OwnReport)
	if err := errors.Join(slices.Delete(slices.Clone(outcomes), 7, 8)...); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(tallies, func(a, b postgres.Tally) int { return int(a.Score - b.Score) })
	for i, got := range tallies[1:] { // the first is that of the refusal
		if want := (postgres.Tally{Score: int64(i + 1), Version: int64(i + 2)}); got != want {
			t.Errorf("tally %+v, want %+v", got, want)
		}
	}
	f.recount(id)
	f.checkOrder()
	if got := f.transactions(); got != 2 {
		t.Errorf("%d transactions, want that of the report and one for all votes", got)
	}
}

// Whoever votes several times at once has one vote, and it counts once.
func TestSameVoterTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for name, votes := range map[string][]report.Vote{
		"all kinds":   {report.Upvote, report.Downvote, report.None},
		"withdrawals": {report.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := crowded(t)
			id := f.file(ann, draft(report.Public)).ID
			if _, err := f.Vote(t.Context(), id, bob.ID, report.Upvote); err != nil {
				t.Fatal(err)
			}
			outcomes := f.gather(10, 9, f.take(), func(i int) error {
				_, err := f.Vote(t.Context(), id, bob.ID, votes[i%len(votes)])
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

// A caller who leaves while he waits for his turn leaves nothing behind, and
// his neighbours go on; whether he leads a batch or not.
func TestCallerLeavesBeforeHisTurn(t *testing.T) {
	t.Parallel()
	f := crowded(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 20)
	release := f.take()
	outcomes := f.gather(40, 40-postgres.MaxCommits, func() {
		leave()
		for range 20 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v, want that he left", err)
			}
		}
		release()
	}, func(i int) error {
		if i%2 == 0 {
			return f.create(false)
		}
		_, err := f.Create(ctx, filing(draft(report.Public), bob, time.Now()), nil)
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

// Reports that somebody else has locked, more of them than batches are written
// at a time, hold up nobody who wants something else.
func TestLockedReportsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "pool_max_conns", "30")
	free := f.file(ann, draft(report.Public)).ID
	var releases []func()
	outcomes := make(chan error)
	locked := make([]uuid.UUID, postgres.MaxCommits+3)
	for i := range locked {
		locked[i] = f.file(ann, draft(report.Public)).ID
		releases = append(releases, f.lock(locked[i]))
		go func() {
			_, err := f.Vote(t.Context(), locked[i], bob.ID, report.Upvote)
			outcomes <- err
		}()
	}
	f.waitForLock(len(locked))
	if err := f.create(false); err != nil {
		t.Errorf("Create: %v", err)
	}
	if _, err := f.Vote(t.Context(), free, bob.ID, report.Upvote); err != nil {
		t.Errorf("Vote: %v", err)
	}
	for i := range locked {
		releases[i]()
		if err := <-outcomes; err != nil {
			t.Errorf("Vote on what was locked: %v", err)
		}
	}
	for _, id := range locked {
		f.recount(id)
	}
}

// A batch that hangs in the database holds up nobody who comes after it.
func TestSlowCommitHoldsNobodyUp(t *testing.T) {
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
	go func() { slow <- f.create(false) }()
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

// The server dies while a batch is being written: nobody is told that his
// change stands, none of it does, and all of it can be made again.
func TestCrashInMidBatch(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	database := server.Create(migrations.Report)
	f, onlooker := openFixture(t, database, "pool_max_conns", "1"), openFixture(t, database)
	id := f.file(ann, draft(report.Public)).ID
	f.exec(`create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$`)
	f.exec(`create trigger wait before insert on outbox_messages for each row execute function wait()`)
	holder, err := onlooker.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	vote := func(i int) error {
		_, err := f.Vote(t.Context(), id, fmt.Sprintf("voter-%d", i), report.Upvote)
		return err
	}
	release := f.take()
	outcomes := f.gather(20, 19, func() {
		release()
		onlooker.waitForLock(1)
		server.Kill()
	}, vote)
	_ = holder.Rollback(t.Context()) // its server is gone
	for _, err := range outcomes {
		wantKind(t, err, report.Unavailable)
	}
	server.Start()
	f.exec(`drop trigger wait on outbox_messages`)
	if got := f.count(); got["votes"] != 0 || got["outbox_messages"] != 1 {
		t.Errorf("rows %v, want no votes, and only the report announced", got)
	}
	for i := range outcomes {
		if err := vote(i); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	f.recount(id)
	f.checkOrder()
}
