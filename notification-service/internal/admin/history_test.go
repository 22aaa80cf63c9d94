package admin_test

import (
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// The console has the past of the queues at once, also that which other replicas
// counted, and gaps where nothing is known.
func TestPoolHistory(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	_, err := c.Pool.Exec(t.Context(), `
		insert into history (replica, since, until, figures)
		select gen_random_uuid(), now() - interval '150 seconds', now() - interval '90 seconds',
		  '{"counters": {"handled_per_s queue.vote_received": 600}, "levels": {"depth queue.vote_received": 5}}'
		from generate_series(1, 2)`)
	if err != nil {
		t.Fatal(err)
	}
	var past struct {
		StepSeconds float64 `json:"step_seconds"`
		Replicas    []int
		Series      []struct {
			Name, Queue string
			Runs        []struct {
				From   int
				Values []float64
			}
		}
	}
	c.call(http.MethodGet, "/admin/workers/history?minutes=15", "", http.StatusOK, &past)
	if past.StepSeconds != 10 || len(past.Replicas) != 90 || len(past.Series) != 2 {
		t.Fatalf("the history is %+v, want two series of 90 steps of 10 s", past)
	}
	if len(past.Series[1].Runs) != 1 {
		t.Fatalf("the series are %+v, want one run", past.Series)
	}
	handled, known := 0.0, past.Series[1].Runs[0].Values
	for _, v := range known {
		handled += v * past.StepSeconds
	}
	if past.Series[1].Name != "handled_per_s" || past.Series[1].Queue != "queue.vote_received" || handled < 1199.9 || handled > 1200.1 {
		t.Errorf("%.1f handled in %s of %s, want 1,200 in handled_per_s of queue.vote_received", handled, past.Series[1].Name, past.Series[1].Queue)
	}
	if len(known) > 8 || past.Series[0].Name != "depth" {
		t.Errorf("%d steps of a minute are known, and the other series is %s, want at most 8 and depth", len(known), past.Series[0].Name)
	}
	for _, wrong := range []string{"0", "361", "hour"} {
		c.call(http.MethodGet, "/admin/workers/history?minutes="+wrong, "", http.StatusBadRequest, nil)
	}
}

// The history of a pool is what it handled, by queue.
func TestPoolFigures(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t, pgtest.Notification(t))
	c, _ := r.Start()
	r.WaitSubscribed(1)
	r.Publish(r.Votes(5, "alice")...)
	r.Eventually("5 handled", func() string {
		f := admin.PoolFigures(c)
		if f.Counters["handled_per_s queue.vote_received"] == 5 && f.Levels["handler_p99_ms queue.vote_received"] > 0 {
			return ""
		}
		return jsonOf(t, f)
	})
	if f := admin.PoolFigures(c); len(f.Counters) == 0 || f.Counters["failed_per_s queue.vote_received"] != 0 {
		t.Errorf("figures are %+v", f)
	}
}
