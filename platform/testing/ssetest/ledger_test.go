package ssetest_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	n := func(id string) sse.Event { return sse.Event{Type: sse.Notification, ID: id} }
	ready := func(id string) sse.Event { return sse.Event{Type: sse.Ready, ID: id} }
	for _, tt := range []struct {
		name   string
		events []sse.Event
		want   ssetest.Count
	}{
		{"in order", []sse.Event{ready("v1.e.1"), n("v1.e.2"), n("v1.e.3")}, ssetest.Count{Received: 2}},
		{"first without ready", []sse.Event{n("v1.e.9")}, ssetest.Count{Received: 1}},
		{"hole", []sse.Event{ready("v1.e.1"), n("v1.e.4")}, ssetest.Count{Received: 1, Missing: 2}},
		{"doubled", []sse.Event{ready("v1.e.1"), n("v1.e.2"), n("v1.e.2")}, ssetest.Count{Received: 2, Doubled: 1}},
		{"two again", []sse.Event{n("v1.e.2"), n("v1.e.3"), n("v1.e.2"), n("v1.e.3")}, ssetest.Count{Received: 4, Doubled: 2}},
		{"swapped", []sse.Event{n("v1.e.1"), n("v1.e.3"), n("v1.e.2")}, ssetest.Count{Received: 3, Missing: 1, Doubled: 2}},
		{"resumed too far on", []sse.Event{n("v1.e.1"), ready("v1.e.3"), n("v1.e.4")}, ssetest.Count{Received: 2, Missing: 2}},
		{"two streams", []sse.Event{ready("v1.a.1.b.7"), n("v1.a.1.b.8"), n("v1.a.2.b.8")}, ssetest.Count{Received: 2}},
		{"both at once", []sse.Event{ready("v1.a.1.b.7"), n("v1.a.2.b.8")}, ssetest.Count{Received: 1, OutOfOrder: 1}},
		{"another epoch", []sse.Event{ready("v1.a.1"), n("v1.b.2")}, ssetest.Count{Received: 1, OutOfOrder: 1}},
		{"reset", []sse.Event{ready("v1.a.1"), {Type: sse.Reset, ID: "v1.b.50"}, n("v1.b.51")}, ssetest.Count{Received: 1, Resets: 1}},
		{"no id", []sse.Event{n("7")}, ssetest.Count{OutOfOrder: 1}},
	} {
		var l ssetest.Ledger
		for _, e := range tt.events {
			l.Observe(e)
		}
		if got := l.Count(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
