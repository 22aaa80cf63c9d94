package e2e

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// The broker loses its disk while a backlog waits there that nobody has
// consumed. All of it is shown in the end, once, without anybody's doing.
// BROKER_BACKLOG says how many messages wait, 200 if it is not set.
func TestBrokerLosesItsDisk(t *testing.T) {
	t.Parallel()
	t.Run("nobody else is there", func(t *testing.T) {
		t.Parallel()
		loseTheDisk(t, func(*stack) {}, func(*stack, time.Time) {})
	})
	// Its queue takes the same messages, and is there before those of notifications.
	t.Run("the worker of webhooks is back first", func(t *testing.T) {
		t.Parallel()
		loseTheDisk(t,
			func(c *stack) { openOtherSystem(t).register(c, c.signIn("Pavel", "operator")) },
			(*stack).awaitPublished)
	})
}

// loseTheDisk does so: begin is called before the first report, and back, with the
// time of the loss, between the broker's return and that of notification-service.
func loseTheDisk(t *testing.T, begin func(*stack), back func(*stack, time.Time)) {
	t.Helper()
	const voters = 8
	backlog := 200
	if text := os.Getenv("BROKER_BACKLOG"); text != "" {
		backlog = must(strconv.Atoi(text))
	}
	server := rabbittest.StartServer(t)
	c := prepareStackAt(t, server.URL(), server.ManagementURL())
	c.notification.start()
	c.report.start()
	c.awaitReady()
	begin(c)
	ana := c.signIn("Ana", "resident")
	officials, anas := watch(t, c.signIn("Olga", "official")), watch(t, ana)
	first := file(t, ana, "Before the disk is lost")
	officials.await(1)
	eventually.True(t, "the relay knows the broker", func() bool {
		var known bool
		return c.reportDB.QueryRow(t.Context(), `select exists (select from known_brokers)`).Scan(&known) == nil && known
	})

	c.notification.kill()
	var mu sync.Mutex // guards the two
	wantOfficials, wantAna := []sight{sightOf(first)}, []sight(nil)
	var users sync.WaitGroup
	for n := range voters {
		voter := c.signIn(fmt.Sprintf("Voter %d", n), "resident")
		users.Go(func() {
			for range backlog / voters / 2 {
				report, err := ana.CreateReport(t.Context(), draft("In the backlog"), "Idempotency-Key", uuid.NewString())
				if err != nil {
					t.Errorf("file a report: %v", err)
					return
				}
				tally, err := voter.Vote(t.Context(), report.ID, "upvote")
				if err != nil {
					t.Errorf("vote: %v", err)
					return
				}
				mu.Lock()
				wantOfficials = append(wantOfficials, sightOf(report))
				wantAna = append(wantAna, sight{voted, report.ID, tally.Version})
				mu.Unlock()
			}
		})
	}
	users.Wait()
	c.awaitPublished(time.Time{})
	server.Destroy()
	lost := time.Now()
	server.Start()
	back(c, lost)
	began := time.Now()
	c.notification.start()
	officials.await(len(wantOfficials))
	anas.await(len(wantAna))
	t.Logf("%d messages were shown %.1f s after notification-service was started", backlog, time.Since(began).Seconds())
	officials.check(wantOfficials)
	anas.check(wantAna)
	c.awaitPublished(lost)
}

// awaitPublished returns when the broker has confirmed everything in the outbox
// since then.
func (c *stack) awaitPublished(since time.Time) {
	c.t.Helper()
	eventually.True(c.t, "everything is published", func() bool {
		var waiting int
		err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from outbox_messages where status <> 'published' or published_at < $1`, since).Scan(&waiting)
		return err == nil && waiting == 0
	})
}

// Events that waited for delivery-worker at a broker that loses its disk are sent in
// the end, although the worker was away when all of them were published again: its
// queue is there without it.
func TestBrokerLosesWhatWaitsForWebhooks(t *testing.T) {
	t.Parallel()
	const backlog = 20
	server := rabbittest.StartServer(t)
	c := prepareStackAt(t, server.URL(), server.ManagementURL())
	c.start()
	other := openOtherSystem(t)
	other.register(c, c.signIn("Pavel", "operator"))
	ana := c.signIn("Ana", "resident")
	file(t, ana, "Before the disk is lost")
	other.await(1)
	c.worker.terminate() // and gives its lanes back
	for range backlog {
		file(t, ana, "In the backlog")
	}
	c.awaitPublished(time.Time{})
	c.report.kill()
	server.Destroy()
	lost := time.Now()
	server.Start()
	c.awaitConsumersOf(topology.Queue(event.StatusUpdatedKey)) // so it has declared everything
	c.report.start()
	c.awaitPublished(lost)
	c.worker.start()
	other.await(1 + backlog)
}
