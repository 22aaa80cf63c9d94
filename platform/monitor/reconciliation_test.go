package monitor

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/reconciliation"
)

func TestReconciliation(t *testing.T) {
	t.Parallel()
	of := func(group string, f reconciliation.Figures) reconciliation.Summary {
		return reconciliation.Summary{Group: group, Figures: f}
	}
	for name, tt := range map[string]struct {
		groups []reconciliation.Summary
		err    error
		want   Reading
	}{
		"no answer":    {nil, errors.New("away"), Reading{State: Unknown, Cause: NoDatabase}},
		"no group":     {nil, nil, Reading{State: Unknown, Cause: NotRead}},
		"all there":    {[]reconciliation.Summary{of("a", reconciliation.Figures{Late: time.Minute, Awaited: 3})}, nil, Reading{State: Good}},
		"deleted":      {[]reconciliation.Summary{of("a", reconciliation.Figures{Gap: 2}), of("outbox", reconciliation.Figures{Deleted: 1})}, nil, Reading{State: Bad, Cause: Deleted, Names: []string{"outbox"}, Count: 1}},
		"lost of two":  {[]reconciliation.Summary{of("a", reconciliation.Figures{Missing: 2, Gap: 1}), of("b", reconciliation.Figures{Missing: 1})}, nil, Reading{State: Bad, Cause: Missing, Names: []string{"a", "b"}, Count: 3}},
		"a gap":        {[]reconciliation.Summary{of("a", reconciliation.Figures{Unknown: 5}), of("b", reconciliation.Figures{Gap: 1})}, nil, Reading{State: Warning, Cause: Gap, Names: []string{"b"}, Count: 1}},
		"a restore":    {[]reconciliation.Summary{of("a", reconciliation.Figures{Unknown: 5})}, nil, Reading{State: Warning, Cause: Maybe, Names: []string{"a"}, Count: 5}},
		"no manifest":  {[]reconciliation.Summary{of("a", reconciliation.Figures{Late: manifestLate + time.Minute})}, nil, Reading{State: Warning, Cause: Late, Names: []string{"a"}, Count: 60}},
		"an early one": {[]reconciliation.Summary{of("a", reconciliation.Figures{Late: -manifestLate - time.Minute})}, nil, Reading{State: Warning, Cause: Late, Names: []string{"a"}, Count: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := Reconciliation(func(context.Context) ([]reconciliation.Summary, error) { return tt.groups, tt.err })
			if got := read(t.Context()); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("reading is %+v, want %+v", got, tt.want)
			}
		})
	}
}
