package relay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// Replicas that come and go share the shards evenly, hand them over without
// publishing a row twice, and keep the order.
func TestReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	stopWriting := writeSteadily(t, pool)

	var replicas, all []replica
	for _, step := range []struct {
		replicas    int
		least, most int // shards of one
	}{{1, 16, 16}, {2, 8, 8}, {4, 4, 4}, {3, 5, 6}, {2, 8, 8}, {1, 16, 16}} {
		for len(replicas) < step.replicas {
			// Shards move at a renewal, which is due at a third of the lease.
			r := start(t, pool, url, func(c *relay.Config) { c.Lease = 9 * time.Second })
			replicas, all = append(replicas, r), append(all, r)
		}
		for len(replicas) > step.replicas {
			if err := replicas[0].stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			replicas = replicas[1:]
		}
		eventually.True(t, "even shares", func() bool {
			shares := shares(t, pool)
			total := 0
			for _, n := range shares {
				total += n
				if n < step.least || n > step.most {
					return false
				}
			}
			return total == 16 && len(shares) == step.replicas
		})
	}
	rows := stopWriting()
	arrived.wait(t, rows)
	waitEmpty(t, pool)
	_, doubled, inverted := arrived.figures()
	t.Logf("%d rows over 1, 2, 4, 3, 2 and 1 replicas: %d published twice, %d inverted", len(rows), doubled, inverted)
	// A broker that says nothing for seconds, as on a starved machine, has a connection ended
	// with what it has not confirmed, which is published again.
	cut := slices.ContainsFunc(all, func(r replica) bool { return r.State().Connects > 1 })
	if doubled != 0 && !cut || inverted != 0 {
		t.Errorf("%d doubled, %d inverted; want none", doubled, inverted)
	}
}

// A replica that cannot reach the broker leaves the shards to those who can.
func TestReplicaWithoutBrokerOwnsNothing(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	lost := start(t, pool, "amqp://guest:guest@127.0.0.1:1/")
	r := start(t, pool, url)
	eventually.True(t, "all shards at the other", func() bool { return shares(t, pool)[r.State().ID] == 16 })
	if s := lost.State(); s.Connected || s.LastError == "" || lost.Probe(t.Context()) == nil {
		t.Errorf("state without a broker: %+v, want disconnected with its reason", s)
	}
}

// shares returns how many shards each owner has under a valid lease.
func shares(t testing.TB, pool *pgxpool.Pool) map[uuid.UUID]int {
	t.Helper()
	rows, err := pool.Query(context.WithoutCancel(t.Context()),
		`select owner, count(*) from relay_shards where owner is not null and lease_until > now() group by owner`)
	if err != nil {
		return nil
	}
	shares := make(map[uuid.UUID]int)
	var owner uuid.UUID
	var n int
	_, err = pgx.ForEachRow(rows, []any{&owner, &n}, func() error { shares[owner] = n; return nil })
	if err != nil {
		return nil
	}
	return shares
}

func owners(t testing.TB, pool *pgxpool.Pool) int { return len(shares(t, pool)) }

// writeSteadily commits rows of fifty reports until the returned function is
// called, which returns what was written.
func writeSteadily(t testing.TB, pool *pgxpool.Pool) (stop func() []outboxRow) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []outboxRow, 1)
	reports := newRows(50, 1)
	go func() {
		var written []outboxRow
		defer func() { done <- written }()
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for version := int64(1); ctx.Err() == nil; version++ {
			for _, r := range reports {
				<-pace.C
				next := newRow(r.report, version)
				if _, err := pool.Exec(context.WithoutCancel(ctx), insertSQL, next.args()...); err == nil {
					written = append(written, next)
				}
			}
		}
	}()
	return func() []outboxRow {
		cancel()
		return <-done
	}
}
