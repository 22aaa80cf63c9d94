package relay_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// confirmTimeout is short, so that the tests are. A broker on a slow machine may
// take longer, and the relay then connects once more.
const confirmTimeout = time.Second

// Whatever happens to the broker, rows are still written, and once it is back
// all of them arrive, in order; no row is failed for it.
//
// It is one queue throughout, and a clean restart comes first: RabbitMQ 3.10
// saves its list of quorum queues now and then only, and a queue that is
// younger than the last save does not survive a kill.
func TestBrokerFaults(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	pool, url := pgtest.Report(t), server.URL()
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	for _, fault := range []struct {
		name        string
		break_, fix func()
		noticed     func(relay.State) bool
	}{
		{"restarted", server.Stop, server.Start, isAway},
		{"killed", server.Kill, server.Start, isAway},
		{"frozen", server.Pause, server.Resume, isAway},
		{"disk alarm", func() { server.SetDiskAlarm(true) }, func() { server.SetDiskAlarm(false) }, keepsBlocked()},
	} {
		t.Run(fault.name, func(t *testing.T) {
			r := start(t, pool, url, func(c *relay.Config) {
				c.MaxAttempts = 1 // a single attempt that was counted would fail the row
				c.ConfirmTimeout = confirmTimeout
			})
			seen, doubledBefore, _ := arrived.figures()
			stopWriting := writeSteadily(t, pool)
			eventually.True(t, "flow", func() bool { now, _, _ := arrived.figures(); return now > seen+100 })

			fault.break_()
			eventually.True(t, "the fault noticed", func() bool { return fault.noticed(r.State()) })
			if r.Probe(t.Context()) == nil {
				t.Error("the health check reports no fault")
			}
			before := countRows(t, pool, "pending")
			eventually.True(t, "a backlog", func() bool { return countRows(t, pool, "pending") > before+200 })
			fault.fix()
			rows := stopWriting()
			arrived.wait(t, rows)
			waitEmpty(t, pool)

			_, doubled, inverted := arrived.figures()
			failed := countRows(t, pool, "failed")
			t.Logf("%d rows: 0 lost, %d failed, %d inverted, %d published twice", len(rows), failed, inverted, doubled-doubledBefore)
			// A slow broker may cost further connections, and each may publish as much twice.
			if most := int(r.State().Connects) * unrecorded; failed != 0 || inverted != 0 || doubled-doubledBefore > most {
				t.Errorf("%d failed, %d inverted, want none; %d doubled, want at most %d", failed, inverted, doubled-doubledBefore, most)
			}
			eventually.True(t, "connected and not blocked", func() bool { s := r.State(); return s.Connected && s.Blocked == "" })
		})
	}
	t.Run("hanging", func(t *testing.T) { testHang(t, server) })
}

// A connection hangs: the broker sends heartbeats on it, and answers nothing. The
// relay gives it up and goes on with another.
func testHang(t *testing.T, server *rabbittest.Server) {
	pool, url := pgtest.Report(t), server.Vhost()
	bindQueue(t, url, event.VoteReceivedKey)
	r := start(t, pool, url, func(c *relay.Config) { c.ConfirmTimeout = confirmTimeout })
	rows := newRows(10, 10)
	insertMany(t, pool, rows)
	waitEmpty(t, pool)
	server.Hang()
	later := newRows(10, 10)
	insertMany(t, pool, later)
	waitEmpty(t, pool)
	receive(t, url, event.VoteReceivedKey).wait(t, append(rows, later...))
	if n := r.State().Connects; n < 2 {
		t.Errorf("%d connections, want the one that hung and another", n)
	}
}

func isAway(s relay.State) bool { return !s.Connected }

// keepsBlocked returns a function that is to be asked about one state after the
// other. It reports whether a connection has stayed, blocked, for longer than a
// confirm may take.
func keepsBlocked() func(relay.State) bool {
	var first relay.State // with this connection blocked
	return func(s relay.State) bool {
		if s.Blocked == "" || s.Since != first.Since {
			first = s
		}
		return s.BlockedFor-first.BlockedFor > 2*confirmTimeout
	}
}
