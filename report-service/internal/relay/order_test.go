package relay_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Transactions of all lengths commit in any order but their report's: all
// their rows arrive, in the order of their report, while one transaction is
// held open the whole time; and when that one commits at last, its row comes
// before the one that waited for its lock.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	reports := lockable(t, pool, 20)
	start(t, pool, url, patiently)

	late, commit := holdOpen(t, pool, reports[0])
	var mu sync.Mutex
	var rows []outboxRow
	var writers sync.WaitGroup
	for range 12 {
		writers.Go(func() {
			for range 30 {
				report := reports[1+rand.IntN(len(reports)-1)]
				row := commitSlowly(t, pool, report, time.Duration(rand.IntN(40))*time.Millisecond)
				mu.Lock()
				rows = append(rows, row)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	arrived.wait(t, rows) // although one transaction is still open
	var follower outboxRow
	writers.Go(func() { follower = commitSlowly(t, pool, reports[0], 0) })
	commit()
	writers.Wait()
	rows = append(rows, late, follower)
	arrived.wait(t, rows)
	waitEmpty(t, pool)

	_, doubled, inverted := arrived.figures()
	t.Logf("%d rows by overlapping transactions, one of them open throughout: 0 lost, %d inverted, %d published twice",
		len(rows), inverted, doubled)
	if inverted != 0 || doubled != 0 {
		t.Errorf("%d inverted, %d doubled; want none", inverted, doubled)
	}
}

// One report that everyone votes on goes at full speed, in order.
func TestHotReport(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	rows := newRows(1, 5_000)
	insertMany(t, pool, rows)
	r := start(t, pool, url, patiently)
	widest := 0
	eventually.True(t, "all of it", func() bool {
		widest = max(widest, r.State().InFlight)
		return countRows(t, pool, "pending") == 0
	})
	arrived.wait(t, rows)
	_, doubled, inverted := arrived.figures()
	t.Logf("%d rows of one report, up to %d in flight: %d inverted, %d published twice", len(rows), widest, inverted, doubled)
	if inverted != 0 || doubled != 0 || widest < 100 {
		t.Errorf("%d inverted, %d doubled, want none; at most %d in flight, want pipelining", inverted, doubled, widest)
	}
}

// lockable makes reports that a transaction can lock.
func lockable(t *testing.T, pool *pgxpool.Pool, n int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.New()
	}
	_, err := pool.Exec(t.Context(), `create table lockable (id uuid primary key, version bigint not null default 0)`)
	if err == nil {
		_, err = pool.Exec(t.Context(), `insert into lockable (id) select unnest($1::uuid[])`, ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// commitSlowly writes a row of report as a service does: lock, row, commit,
// here with a delay before the commit.
func commitSlowly(t testing.TB, pool *pgxpool.Pool, report uuid.UUID, delay time.Duration) (row outboxRow) {
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		row, err = writeLocked(t.Context(), tx, report)
		time.Sleep(delay) //nolint:forbidigo // the fault: a transaction that takes its time
		return err
	})
	if err != nil {
		t.Errorf("write: %v", err)
	}
	return row
}

func writeLocked(ctx context.Context, tx pgx.Tx, report uuid.UUID) (outboxRow, error) {
	var version int64
	err := tx.QueryRow(ctx, `update lockable set version = version + 1 where id = $1 returning version`, report).Scan(&version)
	row := newRow(report, version)
	if err == nil {
		_, err = tx.Exec(ctx, insertSQL, row.args()...)
	}
	return row, err
}

// holdOpen writes a row of report in a transaction that stays open until
// commit is called.
func holdOpen(t *testing.T, pool *pgxpool.Pool, report uuid.UUID) (row outboxRow, commit func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err == nil {
		row, err = writeLocked(t.Context(), tx, report)
	}
	if err != nil {
		t.Fatal(err)
	}
	return row, func() {
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
