package e2e

import (
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// While there is no broker, reports and votes are accepted as ever, and the
// service says that it is degraded. Everything arrives once the broker is back.
func TestBrokerStopped(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	c := prepareStackAt(t, server.URL(), server.ManagementURL())
	c.notification.start()
	c.report.start()
	c.awaitReady()
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	officials, anas := watch(t, c.signIn("Olga", "official")), watch(t, ana)
	first := file(t, ana, "Before the broker stops")
	officials.await(1)

	server.Stop()
	c.awaitHealth("degraded")
	wantOfficials, wantAna := []sight{sightOf(first)}, []sight(nil)
	for i := range 30 {
		wantOfficials = append(wantOfficials, sightOf(file(t, ana, "While it is away")))
		wantAna = append(wantAna, vote(t, ben, first, []string{"upvote", "downvote"}[i%2]))
	}
	c.awaitHealth("degraded") // still, and still ready
	server.Start()
	officials.check(wantOfficials)
	anas.check(wantAna)
	c.awaitHealth("up")
	c.checkOutboxEmpty()
}

// awaitHealth returns when report-service answers 200 and says status.
func (c *stack) awaitHealth(status string) {
	c.t.Helper()
	service := client.New(c.report.url())
	defer service.CloseIdle()
	eventually.True(c.t, "report-service is "+status, func() bool {
		var health struct{ Status string }
		return service.Do(c.t.Context(), http.MethodGet, "/readyz", nil, &health) == nil && health.Status == status
	})
}

// checkOutboxEmpty proves that every row is published and none cost an
// attempt.
func (c *stack) checkOutboxEmpty() {
	c.t.Helper()
	eventually.True(c.t, "every outbox row is published", func() bool {
		var waiting int
		err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from outbox_messages where status <> 'published'`).Scan(&waiting)
		return err == nil && waiting == 0
	})
	var attempts int
	err := c.reportDB.QueryRow(c.t.Context(), `select coalesce(sum(retry_count), 0) from outbox_messages`).Scan(&attempts)
	if err != nil || attempts != 0 {
		c.t.Errorf("the broker's absence cost %d attempts (error: %v)", attempts, err)
	}
}
