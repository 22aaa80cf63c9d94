package relay_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// unrecorded is what a crash may leave published and unrecorded at most: a
// window and a batch of results.
const unrecorded = 512 + 1000

// A relay that is killed a hundred times at random moments loses nothing and
// inverts nothing; what it publishes twice is bounded.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	const lanes, kills = 10, 10
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			pool, url := pgtest.Report(t), rabbittest.Vhost(t)
			bindQueue(t, url, event.VoteReceivedKey)
			arrived := receive(t, url, event.VoteReceivedKey)
			rows := newRows(200, 20)
			insertMany(t, pool, rows)

			for range kills {
				c := startChild(t, pool.Config().ConnString(), url, 3*time.Second)
				before, _, _ := arrived.figures()
				goal := min(before+1+rand.IntN(400), len(rows))
				eventually.True(t, "some progress", func() bool {
					seen, _, _ := arrived.figures()
					return seen >= goal
				})
				c.kill()
			}
			start(t, pool, url)
			arrived.wait(t, rows)
			waitEmpty(t, pool)

			_, doubled, inverted := arrived.figures()
			t.Logf("%d kills over %d rows: 0 lost, %d inverted, %d published twice", kills, len(rows), inverted, doubled)
			if inverted > 0 || doubled > kills*unrecorded {
				t.Errorf("%d inverted, want 0; %d doubled, want at most %d", inverted, doubled, kills*unrecorded)
			}
		})
	}
}

// A relay that is paused for longer than its lease and wakes up in the middle
// of a publish publishes nothing that its successor has published. The default
// lease, and a pause of 20 s.
func TestPausedPastItsLease(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	rows := newRows(200, 50)
	insertMany(t, pool, rows)

	paused := startChild(t, pool.Config().ConnString(), url, relay.Defaults().Lease)
	eventually.True(t, "full speed", func() bool { seen, _, _ := arrived.figures(); return seen > 500 })
	if err := devserver.Freeze(paused.Process.Pid); err != nil {
		t.Fatal(err)
	}
	pausedAt := time.Now()
	start(t, pool, url)
	arrived.wait(t, rows) // the successor takes over and finishes
	waitEmpty(t, pool)
	takenOver := time.Since(pausedAt)
	_, before, _ := arrived.figures()

	time.Sleep(time.Until(pausedAt.Add(20 * time.Second))) //nolint:forbidigo // the fault is a pause of this length
	paused.signal(t, syscall.SIGCONT)
	more := newRows(100, 20)
	insertMany(t, pool, more)
	arrived.wait(t, more)
	eventually.True(t, "shards shared again", func() bool { return owners(t, pool) == 2 })

	_, doubled, inverted := arrived.figures()
	t.Logf("successor done after %v; %d published twice at the takeover, %d after waking, %d inverted",
		takenOver.Round(time.Second), before, doubled-before, inverted)
	if before > unrecorded || doubled != before || inverted != 0 {
		t.Errorf("%d doubled at the takeover, want at most %d; %d after waking, want 0; %d inverted, want 0",
			before, unrecorded, doubled-before, inverted)
	}
}
