package e2e

import (
	"net/http"
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An overdue report is notified to officials, at each level once and although
// report-service is killed on the way, and neither to its reporter nor to everybody.
func TestOverdueReachesOfficialsAlone(t *testing.T) {
	t.Parallel()
	const overdue, levels = "report.overdue", 3
	c := startStack(t)
	ana, olga, pavel := c.signIn("Ana", "resident"), c.signIn("Olga", "official"), c.signIn("Pavel", "operator")
	type body = map[string]any
	shifts := []body{}
	for _, day := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		shifts = append(shifts, body{"day": day, "from": "00:00", "to": "24:00"})
	}
	err := pavel.Do(t.Context(), http.MethodPut, "/reports/calendar", body{
		"zone": "Asia/Jakarta", "shifts": shifts, "holidays": []string{}, "targets": []body{{"category_id": 2, "hours": 24}},
	}, nil)
	if err != nil {
		t.Fatalf("set the calendar: %v", err)
	}
	anas, olgas := watch(t, ana), watch(t, olga)
	report := file(t, ana, "Dark crossing")
	want := []sight{{created, report.ID, 1}}
	olgas.await(1)
	for level := range levels {
		execute(t, c.reportDB, `
			update reports set clock_since = clock_since - interval '1 day', due_at = due_at - interval '1 day',
				overdue_next_at = overdue_next_at - interval '1 day' where id = $1`, report.ID)
		c.runSchedule(pavel, "reports", "overdue")
		if level == 1 {
			c.report.kill()
			c.report.start()
			c.awaitReady()
		}
		// The report's version does not change by it: the sights are equal.
		want = append(want, sight{overdue, report.ID, 1})
		olgas.await(len(want))
	}
	olgas.check(want)

	// A reader who has the next vote has had all notifications before it.
	anas.check([]sight{vote(t, c.signIn("Ben", "resident"), report, "upvote")})
	var queue struct {
		Reports []struct {
			ID           string `json:"id"`
			OverdueLevel int    `json:"overdue_level"`
		} `json:"reports"`
	}
	if err := olga.Do(t.Context(), http.MethodGet, "/reports/queue?overdue=3&order=due", nil, &queue); err != nil {
		t.Fatalf("read the queue: %v", err)
	}
	if len(queue.Reports) != 1 || queue.Reports[0].ID != report.ID.String() || queue.Reports[0].OverdueLevel != levels {
		t.Errorf("the queue shows %+v, want the report on level %d", queue.Reports, levels)
	}
	file(t, ana, "Loose sign")
	page := c.reader(olga).open("queue?status=all", browser.Width(1280, 800))
	page.do(
		browser.See(".task", "Loose sign"), browser.Click("button", "Filters"), browser.Choose("Overdue", "From level 3"), browser.Click("dialog button.primary", ""),
		browser.See(".task .overdue", "Overdue, level 3"), browser.Until(`document.querySelectorAll('.task').length === 1`),
		browser.Until(`location.search.includes('overdue=3')`),
	)
	page.checkFaults()
	eventually.True(t, "the outbox is empty", func() bool {
		var statuses []string
		err := c.reportDB.QueryRow(t.Context(), `select array_agg(distinct status) from outbox_messages`).Scan(&statuses)
		return err == nil && slices.Equal(statuses, []string{"published"})
	})
}
