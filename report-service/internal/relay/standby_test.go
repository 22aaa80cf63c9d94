package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// A row whose commit was given up while it waited for a standby is visible on
// this server alone. It is published only once a standby has it: the database
// that follows would not know what was announced.
func TestRowWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), server.Create(migrations.Report))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	url := rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	// Renewing leases commits as well: they must not end during the wait.
	start(t, pool, url, func(c *relay.Config) { c.Lease = 10 * time.Minute })
	before := newRow(uuid.New(), 1)
	insert(t, pool, before)
	arrived.wait(t, []outboxRow{before}) // it has its leases, and reads
	waitEmpty(t, pool)

	standby := server.AwaitStandby()
	defer standby.Release()
	row := newRow(uuid.New(), 1)
	written := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.WithoutCancel(t.Context()), insertSQL, row.args()...)
		written <- err
	}()
	seen := func() int { n, _, _ := arrived.figures(); return n }
	barrier := func() (waits bool) {
		err := pool.QueryRow(context.WithoutCancel(t.Context()), `
			select exists (select from pg_stat_activity where wait_event = 'SyncRep'
				and datname = current_database() and query like '%pg_logical_emit_message%')`).Scan(&waits)
		return err == nil && waits
	}
	eventually.True(t, "the row is visible, though no standby has it", func() bool {
		if len(written) == 0 {
			standby.GiveUp()
		}
		return len(written) > 0
	})
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the relay waits for the standby, or publishes", func() bool { return barrier() || seen() > 1 })
	if seen() > 1 {
		t.Fatal("it has published what no standby has")
	}
	standby.Release()
	arrived.wait(t, []outboxRow{before, row})
}
