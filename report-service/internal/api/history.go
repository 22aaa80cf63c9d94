package api

import (
	"context"

	"github.com/cityconnect/cityconnect/platform/history"
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
