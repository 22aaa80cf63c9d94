package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A service that is newer than its schema is not ready, and waits: no message
// becomes a dead letter, and everything is shown once the schema is there.
func TestServicesAwaitTheirSchema(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	reportURL, notificationURL := c.reportDB.Config().ConnString(), c.notificationDB.Config().ConnString()
	if err := migrations.Down(t.Context(), reportURL, migrations.Report); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Down(t.Context(), notificationURL, migrations.Notification); err != nil {
		t.Fatal(err)
	}
	c.report.start()
	c.notification.start()
	for _, p := range []*process{c.report, c.notification} {
		if status, checks := c.readiness(p); status != http.StatusServiceUnavailable || checks["schema"] != "down" {
			t.Errorf("%s without a schema: readiness %d %v, want 503 with schema down", p.path, status, checks)
		}
	}

	if err := migrations.Up(t.Context(), reportURL, migrations.Report); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "report-service is ready", func() bool {
		status, _ := c.readiness(c.report)
		return status == http.StatusOK
	})
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, ana, "Filed before the other schema")
	want := []sight{vote(t, ben, report, "upvote")}
	eventually.True(t, "the messages wait at the broker", func() bool {
		waiting := 0
		for _, q := range c.queues() {
			waiting += q.Messages
		}
		return waiting >= 2
	})
	eventually.True(t, "the consumer has tried", func() bool {
		_, checks := c.readiness(c.notification)
		return checks["consumer"] == "degraded"
	})

	if err := migrations.Up(t.Context(), notificationURL, migrations.Notification); err != nil {
		t.Fatal(err)
	}
	c.awaitReady()
	screen := watch(t, ana)
	eventually.True(t, "the notification is listed", func() bool { return len(screen.listed()) == len(want) })
	compare(t, "listed", screen.listed(), want)
	var letters int
	if err := c.notificationDB.QueryRow(t.Context(), `select count(*) from dead_letters`).Scan(&letters); err != nil || letters != 0 {
		t.Errorf("%d dead letters (error %v), want none", letters, err)
	}
}

// readiness returns what a service answers at /readyz.
func (c *stack) readiness(p *process) (status int, checks map[string]string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, p.url()+"/readyz", http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	var report struct{ Checks map[string]string }
	_ = json.Unmarshal(body, &report) // a problem has none
	return resp.StatusCode, report.Checks
}
