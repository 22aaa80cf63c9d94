package sse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A notification to one reader changes no metric: a voter on an anonymous report does
// not learn at which replica its author is connected, if at all. Notifications to
// officials and the feed are counted.
func TestMetricsTellOfNoReader(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		ann := h.open("/ann", "")
		expect(t, ann, "ready")
		eventually.True(t, "the client is connected", func() bool { return h.metric("sse_connections") == 1 })
		before := h.metrics()
		h.tell("ann")
		expect(t, ann, "notification")
		h.tell("ann", "bob")
		expect(t, ann, "notification")
		ann.Close()
		eventually.True(t, "the client is gone", func() bool { return h.metric("sse_connections") == 0 })
		for series, after := range h.metrics() {
			if after != before[series] && series != "sse_connections" && series != "sse_disconnects_total" {
				t.Errorf("%s is %s after two events of one reader, and was %s", series, after, before[series])
			}
		}

		official, feed := h.open("/olga?official=1", ""), h.open("/feed", "")
		expect(t, official, "ready")
		expect(t, feed, "ready")
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		deliver := func() {
			batch := h.commitReport()
			batch.Feed[0].TraceID = trace
			h.hub.Deliver(batch, time.Now())
		}
		deliver()
		expect(t, official, "notification")
		if e := next(t, feed); strings.Contains(string(e.Data), trace) {
			t.Errorf("the feed shows the trace: %s", e.Data)
		}
		eventually.True(t, "both are counted", func() bool {
			if h.metric("sse_events_total") > 1 && h.metric("sse_bytes_total") > 0 {
				return true
			}
			deliver() // the one before may have come while a stream was opening, as its history
			return false
		})
		eventually.True(t, "the trace is found by the time to the feed", func() bool {
			return strings.Contains(h.metrics()["sse_commit_to_flush_seconds"], trace)
		})
	})
}

// The first gap and the first refusal are an increase: their series are there, with 0,
// from the start.
func TestFirstGapIsAnIncrease(t *testing.T) {
	t.Parallel()
	h := newHarness(t, config(sse.Shared))
	seen := h.metrics()
	for series, label := range map[string]string{"sse_disconnects_total": "gap", "sse_connects_total": "busy"} {
		if !strings.Contains(seen[series], `value:"`+label+`"`) {
			t.Errorf("%s starts as %s, must have %s", series, seen[series], label)
		}
	}
}

// metrics returns all metrics of the hub, each with its labels and values.
func (h *harness) metrics() map[string]string {
	h.t.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	seen := make(map[string]string)
	for _, f := range families {
		seen[f.GetName()] = fmt.Sprint(f.GetMetric())
	}
	return seen
}
