package sse_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// The progress of a photo is sent to its uploader alone, in every tab. It moves no
// cursor: the next notification has the number after the one before.
func TestProgressIsForOneReader(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		tabs := []*ssetest.Stream{h.open("/ann", ""), h.open("/ann", "")}
		others := []*ssetest.Stream{h.open("/ben", ""), h.open("/ola?official=1", ""), h.open("/feed", "")}
		var cursor string
		for _, s := range tabs {
			cursor = expect(t, s, "ready").ID
		}
		for _, s := range others {
			expect(t, s, "ready")
		}
		want := notification.Progress{ReportID: uuid.New(), PhotoID: uuid.New(), Stage: event.PhotoScanning}
		h.hub.Progress(notification.UserStream("ann"), want)
		h.hub.Progress(notification.UserStream("nobody"), want)
		h.tell("ann", "ben", "ola")
		for _, s := range tabs {
			e := expect(t, s, "progress")
			var got notification.Progress
			if err := json.Unmarshal(e.Data, &got); err != nil || got != want || e.ID != cursor {
				t.Errorf("got %s at %s, want %+v at %s (error %v)", e.Data, e.ID, want, cursor, err)
			}
			if n := expect(t, s, "notification"); seqOf(t, n.ID) != seqOf(t, cursor)+1 {
				t.Errorf("%s follows %s", n.ID, cursor)
			}
		}
		for _, s := range others {
			expect(t, s, "notification") // and nothing before it
		}
	})
}

// No amount of progress disconnects a stream: a client that does not read goes
// without.
func TestProgressDisconnectsNobody(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		h.stall("/ann")
		eventually.True(h.t, "the client is connected", func() bool { return h.metric("sse_connections") == 1 })
		p := notification.Progress{ReportID: uuid.New(), PhotoID: uuid.New(), Stage: event.PhotoChecking}
		for range 20_000 { // many times what its socket and its queue take
			h.hub.Progress(notification.UserStream("ann"), p)
		}
		if overflows, open := h.metric("sse_overflows_total"), h.metric("sse_connections"); overflows != 0 || open != 1 {
			t.Errorf("%v clients were disconnected because too much waited, and %v are connected; want 0 and 1", overflows, open)
		}
	})
}
