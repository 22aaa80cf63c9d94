package consumer

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The first retry and the first dead letter of a queue are an increase: their series
// are there, with 0, from the start.
func TestFirstDeadLetterIsAnIncrease(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	newMetrics(reg).started("queue.votes")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "class" && m.GetCounter().GetValue() == 0 {
					got[f.GetName()] = append(got[f.GetName()], label.GetValue())
				}
			}
		}
	}
	for name, classes := range map[string]int{"consumer_messages_retried_total": 2, "consumer_messages_dead_lettered_total": 4} {
		if len(got[name]) != classes {
			t.Errorf("%s starts with the classes %q, must have %d", name, got[name], classes)
		}
	}
}
