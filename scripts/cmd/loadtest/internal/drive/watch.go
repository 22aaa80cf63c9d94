package drive

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/process"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
)

// looks is about how many points the charts have.
const looks = 120

// A watch looks at the run at regular intervals.
type watch struct {
	work     *work
	screen   *latency.Recorder
	operator *client.Client
	groups   []*process.Group
	tell     func(result.Point) // progress, for whoever looks on

	mu     sync.Mutex
	points []result.Point
	last   totals
	cpu    map[string]time.Duration
}

// totals are what an interval is the difference of.
type totals struct {
	at                          time.Duration
	planned, accepted, received int64
}

// interval returns how long to wait between two looks.
func interval(planned time.Duration) time.Duration {
	return min(max(planned/looks, time.Second), 15*time.Second)
}

// run looks until ctx ends.
func (w *watch) run(ctx context.Context, every time.Duration) {
	start := time.Now()
	w.cpu = make(map[string]time.Duration)
	w.processes(0) // what was used before does not count
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(ctx, time.Since(start))
		}
	}
}

func (w *watch) look(ctx context.Context, at time.Duration) {
	tally := w.work.ledger.Tally()
	now := totals{at: at, planned: w.work.planned.Load(), accepted: tally.Accepted, received: tally.Once}
	seconds := (now.at - w.last.at).Seconds()
	rate := func(now, before int64) float64 { return float64(now-before) / seconds }
	p := result.Point{
		Second:   at.Seconds(),
		Planned:  rate(now.planned, w.last.planned),
		Accepted: rate(now.accepted, w.last.accepted),
		Received: rate(now.received, w.last.received),
		Answer:   w.work.all.Interval(), Screen: w.screen.Interval(),
		Outstanding: w.work.ledger.Outstanding(), Pending: w.pending(ctx),
		Processes: w.processes(seconds),
	}
	w.last = now
	w.mu.Lock()
	w.points = append(w.points, p)
	w.mu.Unlock()
	w.tell(p)
}

// pending asks how many messages wait in the outbox; -1 if nobody answers.
func (w *watch) pending(ctx context.Context) int64 {
	var stats struct {
		Pending int64 `json:"pending"`
	}
	if err := w.operator.Do(ctx, http.MethodGet, "/admin/outbox/stats", nil, &stats); err != nil {
		return -1
	}
	return stats.Pending
}

// processes reads what each process takes; seconds is the time since before.
func (w *watch) processes(seconds float64) map[string]result.Usage {
	usage := make(map[string]result.Usage)
	for _, g := range w.groups {
		sample, ok := g.Sample()
		if !ok {
			continue
		}
		u := result.Usage{MiB: float64(sample.Memory) / (1 << 20)}
		if spent := sample.CPU - w.cpu[g.Name]; spent >= 0 && seconds > 0 { // below 0 it is another process
			u.Cores = spent.Seconds() / seconds
		}
		w.cpu[g.Name] = sample.CPU
		usage[g.Name] = u
	}
	return usage
}
