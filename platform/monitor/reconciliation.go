package monitor

import (
	"context"
	"time"

	"github.com/cityconnect/cityconnect/platform/reconciliation"
)

// The causes of reconciliation.
const (
	Missing Cause = "missing" // messages that got lost
	Deleted Cause = "deleted" // messages and notifications that were deleted by hand
	Gap     Cause = "gap"     // manifests that got lost
	Maybe   Cause = "unknown" // messages that may have got lost
	Late    Cause = "late"    // no manifest comes, or one of the future
)

// manifestLate is how old the last manifest is when it is late, as in the alert.
const manifestLate = 5 * time.Minute

// Reconciliation reads whether the groups of consumers have what was published.
func Reconciliation(recent func(context.Context) ([]reconciliation.Summary, error)) func(context.Context) Reading {
	return func(ctx context.Context) Reading {
		groups, err := recent(ctx)
		switch {
		case err != nil:
			return UnknownFor(NoDatabase)
		case len(groups) == 0: // they have not started
			return UnknownFor(NotRead)
		}
		for _, one := range []struct {
			state State
			cause Cause
			count func(reconciliation.Figures) int64
		}{
			{Bad, Missing, func(f reconciliation.Figures) int64 { return f.Missing }},
			{Bad, Deleted, func(f reconciliation.Figures) int64 { return f.Deleted }},
			{Warning, Gap, func(f reconciliation.Figures) int64 { return f.Gap }},
			{Warning, Maybe, func(f reconciliation.Figures) int64 { return f.Unknown }},
			{Warning, Late, func(f reconciliation.Figures) int64 { return int64(max(0, f.Late.Abs()-manifestLate) / time.Second) }},
		} {
			r := Reading{State: one.state, Cause: one.cause}
			for _, g := range groups {
				if n := one.count(g.Figures); n > 0 {
					r.Names, r.Count = append(r.Names, g.Group), r.Count+n
				}
			}
			if r.Names != nil {
				return r
			}
		}
		return Reading{State: Good}
	}
}
