package relay_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A database that is restarted, killed or frozen in the middle of a backlog
// costs nothing but time.
func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	for _, fault := range []struct {
		name        string
		break_, fix func()
	}{
		{"restarted", server.Stop, server.Start},
		{"killed", server.Kill, server.Start},
		{"frozen", server.Pause, server.Resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			pool, err := pgxpool.New(context.WithoutCancel(t.Context()), server.Create(migrations.Report))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			url := rabbittest.Vhost(t)
			bindQueue(t, url, event.VoteReceivedKey)
			arrived := receive(t, url, event.VoteReceivedKey)
			rows := newRows(100, 50)
			insertMany(t, pool, rows)

			r := start(t, pool, url)
			eventually.True(t, "full speed", func() bool { seen, _, _ := arrived.figures(); return seen > 500 })
			fault.break_()
			// Reading has stopped, and all read rows are published.
			eventually.True(t, "standstill", func() bool { return r.State().InFlight == 0 })
			fault.fix()
			arrived.wait(t, rows)
			waitEmpty(t, pool)

			_, doubled, inverted := arrived.figures()
			t.Logf("%d rows: 0 lost, %d inverted, %d published twice", len(rows), inverted, doubled)
			if inverted != 0 || doubled > unrecorded {
				t.Errorf("%d inverted, want 0; %d doubled, want at most %d", inverted, doubled, unrecorded)
			}
			_ = r.stop()
		})
	}
}
