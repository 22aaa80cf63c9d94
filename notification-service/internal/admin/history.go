package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// PoolFigures reads what the history keeps of the worker pools. The name of a
// figure is that of its series, a space, and the queue.
func PoolFigures(c *consumer.Consumer) history.Figures {
	f := history.Figures{Counters: make(map[string]float64), Levels: make(map[string]float64)}
	known := c.Healthy() == nil // otherwise what the broker said is old
	for _, p := range c.Pools() {
		if known {
			f.Levels["depth "+p.Queue] = float64(p.Depth)
		}
		if p.Elsewhere {
			continue
		}
		handled, failed := c.Counted(p.Queue)
		f.Counters["handled_per_s "+p.Queue] = float64(handled)
		f.Counters["failed_per_s "+p.Queue] = float64(failed)
		if p.HandlerP99 > 0 {
			f.Levels["handler_p50_ms "+p.Queue] = milliseconds(p.HandlerP50)
			f.Levels["handler_p99_ms "+p.Queue] = milliseconds(p.HandlerP99)
		}
	}
	return f
}

// HistoryOperations are those about the past.
func HistoryOperations(pool *pgxpool.Pool) openapi.Operations {
	return openapi.Operations{"workerPoolHistory": {
		Handler: func(w http.ResponseWriter, r *http.Request) error { return poolHistory(r.Context(), pool, w, r) },
		Timeout: service.DefaultTimeout,
	}}
}

// poolHistory handles GET /admin/workers/history.
func poolHistory(ctx context.Context, pool *pgxpool.Pool, w http.ResponseWriter, r *http.Request) error {
	minutes, err := number(r.URL.Query().Get("minutes"), 60)
	if err != nil {
		return err
	}
	h, err := history.Read(ctx, pool, time.Duration(minutes)*time.Minute)
	if err != nil {
		return err
	}
	out := api.PoolHistory{Since: h.Since, StepSeconds: int32(h.Step.Seconds()), Replicas: h.Replicas, Series: []api.PoolSeries{}}
	for _, all := range []map[string][]float64{h.Counters, h.Levels} {
		for key, values := range all {
			name, queue, _ := strings.Cut(key, " ")
			out.Series = append(out.Series, api.PoolSeries{Name: api.PoolSeriesName(name), Queue: queue, Runs: each(history.Runs(values), runOf)})
		}
	}
	slices.SortFunc(out.Series, func(a, b api.PoolSeries) int {
		return strings.Compare(a.Queue+" "+string(a.Name), b.Queue+" "+string(b.Name))
	})
	return service.Encode(w, http.StatusOK, out)
}

func runOf(r history.Run) api.HistoryRun {
	return api.HistoryRun{From: int32(r.From), Values: r.Values}
}
