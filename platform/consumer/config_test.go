package consumer

import (
	"slices"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/topology"
)

func TestRetrySchedule(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, tt := range []struct {
		name string
		c    Config
		want []time.Duration
	}{
		{"default", Defaults(), topology.StandardDelays()},
		{"more delays than attempts", Config{MaxAttempts: 3, Backoff: Exponential, Delays: []time.Duration{s, 5 * s, 30 * s}}, []time.Duration{s, 5 * s}},
		{"more attempts than delays", Config{MaxAttempts: 5, Backoff: Exponential, Delays: []time.Duration{2 * s, 30 * s}}, []time.Duration{2 * s, 30 * s, 30 * s, 30 * s}},
		{"linear", Config{MaxAttempts: 4, Backoff: Linear, Delays: []time.Duration{12 * s}}, []time.Duration{12 * s, 24 * s, 30 * s}},
		{"one attempt", Config{MaxAttempts: 1, Delays: []time.Duration{s}}, []time.Duration{}},
	} {
		if got := tt.c.RetrySchedule(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: schedule %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestBulkTakesMore(t *testing.T) {
	t.Parallel()
	c := Defaults()
	if got := (Group{}).config(c); got.Prefetch != 10 || got.BatchSize != 10 || got.BatchWait != 0 {
		t.Errorf("a group whose effect is waited for has %+v", got)
	}
	if got := (Group{Bulk: true}).config(c); got.Prefetch != 100 || got.BatchSize != 100 || got.BatchWait != bulkWait {
		t.Errorf("a bulk group has %+v", got)
	}
	c.Prefetch, c.BatchSize, c.BatchWait = maxPrefetch, maxPrefetch, maxBatchWait
	bulk := (Group{Bulk: true}).config(c)
	if faults := bulk.Validate(); len(faults) != 0 || bulk.BatchWait != maxBatchWait {
		t.Errorf("a bulk group goes beyond the limits: %+v", bulk)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	var named []string
	for _, fault := range (Config{Backoff: "cubic", Delays: []time.Duration{time.Minute}}).Validate() {
		named = append(named, fault.Variable)
	}
	for _, name := range []string{
		"PREFETCH", "CONSUMER_WORKERS", "RETRY_MAX_ATTEMPTS", "RETRY_BACKOFF", "RETRY_DELAYS",
	} {
		if !slices.Contains(named, name) {
			t.Errorf("no fault names %s", name)
		}
	}
}
