package operators

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/service"
)

// History is the operation that answers with what read has of the last minutes. The
// name of a figure is that of its series, or that, a space, and its queue.
func History(read func(ctx context.Context, span time.Duration) (history.History, error)) service.Operation {
	return timed(func(w http.ResponseWriter, r *http.Request) error {
		minutes := service.Number(r.URL.Query().Get("minutes"))
		h, err := read(r.Context(), time.Duration(minutes)*time.Minute)
		if err != nil {
			return err
		}
		view := historyView{Since: h.Since, StepSeconds: int(h.Step.Seconds()), Replicas: h.Replicas, Series: []series{}}
		for _, all := range []map[string][]float64{h.Counters, h.Levels} {
			for figure, values := range all {
				name, queue, _ := strings.Cut(figure, " ")
				view.Series = append(view.Series, series{Name: name, Queue: queue, Runs: service.Each(history.Runs(values), historyRunOf)})
			}
		}
		slices.SortFunc(view.Series, func(a, b series) int {
			return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Name, b.Name))
		})
		return service.Encode(w, http.StatusOK, view)
	})
}

type historyView struct {
	Since       time.Time `json:"since"`
	StepSeconds int       `json:"step_seconds"`
	Replicas    []int32   `json:"replicas"`
	Series      []series  `json:"series"`
}

type series struct {
	Name  string       `json:"name"`
	Queue string       `json:"queue,omitempty"`
	Runs  []historyRun `json:"runs"`
}

type historyRun struct {
	From   int       `json:"from"`
	Values []float64 `json:"values"`
}

func historyRunOf(r history.Run) historyRun { return historyRun{From: r.From, Values: r.Values} }
