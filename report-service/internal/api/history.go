package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

// OutboxFigures returns the figures of the outbox and of this replica's relay
// for the history, by the names of their series.
func OutboxFigures(ctx context.Context, o *outbox.Store, r Relay) history.Figures {
	state := r.State()
	f := history.Figures{
		Counters: map[string]float64{"published_per_s": float64(state.Published)},
		Levels:   make(map[string]float64),
	}
	if state.ConfirmP99 > 0 {
		f.Levels["confirm_p50_ms"] = milliseconds(state.ConfirmP50)
		f.Levels["confirm_p99_ms"] = milliseconds(state.ConfirmP99)
	}
	if stats, err := o.Recent(ctx); err == nil { // if it fails, writing the history fails, too, and is logged
		f.Levels["pending"] = float64(stats.Pending)
		f.Levels["oldest_pending_seconds"] = stats.OldestAge.Seconds()
	}
	return f
}

// outboxHistory handles GET /admin/outbox/history.
func (h outboxHandlers) outboxHistory(w http.ResponseWriter, r *http.Request) error {
	minutes, err := intParam(r, "minutes")
	if err != nil {
		return err
	}
	kept, err := h.history(r.Context(), time.Duration(minutes)*time.Minute)
	if err != nil {
		return err
	}
	out := OutboxHistory{Since: kept.Since, StepSeconds: int32(kept.Step.Seconds()), Replicas: kept.Replicas, Series: []OutboxSeries{}}
	for _, all := range []map[string][]float64{kept.Counters, kept.Levels} {
		for name, values := range all {
			out.Series = append(out.Series, OutboxSeries{Name: OutboxSeriesName(name), Runs: runs(history.Runs(values))})
		}
	}
	slices.SortFunc(out.Series, func(a, b OutboxSeries) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return service.Encode(w, http.StatusOK, out)
}

func runs(known []history.Run) []HistoryRun {
	out := make([]HistoryRun, len(known))
	for i, run := range known {
		out[i] = HistoryRun{From: int32(run.From), Values: run.Values}
	}
	return out
}
