package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Operators are shown that a queue was deleted with its messages, and what to do,
// until the command has noted that enough was published again. Who ran it, and from
// when on, is in the audit.
func TestRepublishedEndsTheFinding(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	c := newCluster(t, rabbittest.Vhost(t), pool.Config().ConnString())
	replica := c.start()
	_, err := pool.Exec(t.Context(), `
		insert into operations_audit (actor, action, queue, detail)
		select 'the service', 'queue_lost', name, jsonb_build_object('since', since::text)
		from (values ('queue.comments', '2026-11-21T09:00:00Z'), ('queue.comments', '2026-11-21T09:30:00Z'), ('queue.overdue', '2026-11-21T10:00:00Z')) q (name, since)`)
	if err != nil {
		t.Fatal(err)
	}
	operator := replica.token("pavel", "operator")
	await := func(want ...string) {
		t.Helper()
		eventually.NothingMissing(t, "findings", func() string {
			var pools struct {
				Findings []struct{ What, Remedy string }
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, replica.URL("/admin/workers"), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+operator)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			if err := json.NewDecoder(resp.Body).Decode(&pools); err != nil {
				return err.Error()
			}
			var got []string
			for _, f := range pools.Findings {
				if strings.HasPrefix(f.What, "queue ") { // another says that there is no management API
					got = append(got, f.What+"; "+f.Remedy)
				}
			}
			if len(got) != len(want) {
				return strings.Join(got, "\n")
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) || !strings.Contains(got[i], "was deleted with its messages; run report-service republish -since 2026-11-21T") {
					return strings.Join(got, "\n")
				}
			}
			return ""
		})
	}
	run := func(args ...string) (out string, ok bool) {
		t.Helper()
		said, err := processtest.Command(t.Context(), c.env, append([]string{"republished"}, args...)...).CombinedOutput()
		return string(said), err == nil
	}
	await("queue.comments", "queue.overdue")

	for _, args := range [][]string{{}, {"-since"}, {"-since", "yesterday"}, {"-since", "2026-11-21T09:00:00Z", "all"}} {
		if out, ok := run(args...); ok || !strings.Contains(out, "usage: notification-service republished -since 2026-11-21T09:00:00Z") {
			t.Errorf("republished %q: succeeded %t, said %s", args, ok, out)
		}
	}
	out, ok := run("-since", "2026-11-21T09:45:00Z")
	if want := "queue.comments has lost messages since 2026-11-21T09:00:00Z, which is earlier"; ok || !strings.Contains(out, want) {
		t.Errorf("republished from too late for one: succeeded %t, said %s, must say %q", ok, out, want)
	}
	await("queue.comments")
	if out, ok := run("-since", "2026-11-21T09:00:00Z"); !ok || strings.TrimSpace(out) != "" {
		t.Errorf("republished: succeeded %t, said %s", ok, out)
	}
	await()

	var noted string
	err = pool.QueryRow(t.Context(), `
		select string_agg(concat_ws(' ', queue, detail->>'since', actor like 'uid %'), ', ' order by id)
		from operations_audit where action = 'queue_republished'`).Scan(&noted)
	if want := "queue.overdue 2026-11-21T09:45:00Z t, queue.comments 2026-11-21T09:00:00Z t"; err != nil || noted != want {
		t.Errorf("the audit has %q (error %v), want %q", noted, err, want)
	}
}
