package sse_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/consumer"
)

// each runs a test with each of the writers.
func each(t *testing.T, test func(t *testing.T, w sse.Writer)) {
	t.Parallel()
	for _, w := range writers {
		t.Run(string(w), func(t *testing.T) { t.Parallel(); test(t, w) })
	}
}

func TestStreamOpens(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		h.commit("ann", "ann")
		s := h.open("/ann", "")
		ready := expect(t, s, "ready")
		if got := unread(t, ready); got != 2 {
			t.Errorf("unread count %d, want 2", got)
		}
		if !strings.HasSuffix(ready.ID, ".2") {
			t.Errorf("id of ready is %q, want the number 2", ready.ID)
		}
		if s.Retry() < 300*time.Millisecond || s.Retry() > 1500*time.Millisecond {
			t.Errorf("retry %s, want 0.3 to 1.5 s", s.Retry())
		}
		for name, want := range map[string]string{
			"Content-Type":      "text/event-stream",
			"Cache-Control":     "no-cache, no-store, no-transform",
			"X-Accel-Buffering": "no",
		} {
			if got := s.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// Whatever happens to the announcements, the stream has each number once and
// in order.
func TestAnnouncementsMayBeAnything(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		s := h.open("/ann", "")
		epoch := seqEpoch(expect(t, s, "ready").ID)
		var batches []notification.Batch
		for range 10 {
			batches = append(batches, h.commit("ann"))
		}
		deliver := func(numbers ...int) {
			for _, n := range numbers {
				h.hub.Deliver(batches[n-1], time.Now())
			}
		}
		deliver(1, 2)
		expectSeqs(t, s, epoch, 1, 2)
		deliver(2, 1, 2, 3) // doubled
		expectSeqs(t, s, epoch, 3)
		deliver(6, 5, 4) // shuffled
		expectSeqs(t, s, epoch, 4, 5, 6)
		deliver(10) // 7 to 9 were lost
		expectSeqs(t, s, epoch, 7, 8, 9, 10)
		h.commit("ann", "ann") // both lost, and nothing comes after them
		h.hub.Compare()
		expectSeqs(t, s, epoch, 11, 12)
		if got := h.metric("sse_gap_repairs_total"); got < 2 {
			t.Errorf("%v gap repairs counted, want 2 or more", got)
		}
	})
}

// A client gets only what is its own; the feed gets everything.
func TestStreamsAreApart(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		ann, bob, feed := h.open("/ann", ""), h.open("/bob", ""), h.open("/feed", "")
		expect(t, ann, "ready")
		expect(t, bob, "ready")
		if e := expect(t, feed, "ready"); e.ID != "" {
			t.Errorf("the feed has an id: %q", e.ID)
		}
		b := h.tell("ann", "bob")
		for _, s := range []struct {
			name string
			got  string
			want notification.Notification
		}{
			{"ann", string(expect(t, ann, "notification").Data), b.Notifications[0]},
			{"bob", string(expect(t, bob, "notification").Data), b.Notifications[1]},
		} {
			if !strings.Contains(s.got, s.want.ID.String()) {
				t.Errorf("%s got %s, want notification %s", s.name, s.got, s.want.ID)
			}
			if strings.Contains(s.got, "ann") || strings.Contains(s.got, "bob") || strings.Contains(s.got, "voter") {
				t.Errorf("%s names a user", s.got)
			}
		}
		for range 2 {
			expect(t, feed, "notification")
		}
	})
}

// An official's connection has both streams, and each id both positions.
func TestOfficialStream(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		h.commitReport() // before the official's time: read
		s := h.open("/ann?official=1", "")
		ready := expect(t, s, "ready")
		if got := unread(t, ready); got != 0 {
			t.Errorf("unread count %d, want 0", got)
		}
		h.tell("ann")
		h.hub.Deliver(h.commitReport(), time.Now())
		own, role := expect(t, s, "notification"), expect(t, s, "notification")
		want := []string{"0.1", "1.1", "1.2"}
		if got := []string{numbers(ready.ID), numbers(own.ID), numbers(role.ID)}; !slices.Equal(got, want) {
			t.Errorf("numbers %v, want %v", got, want)
		}
		s.Close()

		h.commit("ann")
		h.commitReport()
		s = h.open("/ann?official=1", own.ID)
		if e := expect(t, s, "ready"); e.ID != own.ID {
			t.Errorf("ready has id %s, want the cursor %s", e.ID, own.ID)
		}
		last := [3]string{}
		for i := range last {
			last[i] = numbers(expect(t, s, "notification").ID)
		}
		if last[2] != "2.3" {
			t.Errorf("after the resume the numbers were %v, want 2.3 at the end", last)
		}
	})
}

// numbers returns the numbers of an id with two positions.
func numbers(id string) string {
	parts := strings.Split(id, ".")
	if len(parts) != 5 || len(id) >= 64 {
		return id
	}
	return parts[2] + "." + parts[4]
}

// A guest whom an account takes over reads so, as the last event of the open stream.
func TestGuestReadsOfTheAdoption(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		guest := uuid.NewString()
		h.commit(guest)
		s := h.open("/"+guest, "")
		expect(t, s, "ready")
		_, ends, err := h.store.Adoptions.Apply(t.Context(), "adoptions", []consumer.Parsed[postgres.Adoption]{
			{ID: "m1", Value: postgres.Adoption{Guest: guest, Account: "ann"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.hub.Deliver(notification.Batch{Notifications: ends}, time.Now())
		if e := expect(t, s, "reset"); string(e.Data) != `{"reason":"guest_adopted"}` {
			t.Errorf("data %s, want that an account has taken over", e.Data)
		}
		if e, err := s.Next(); err == nil {
			t.Errorf("then comes %+v, want the end", e)
		}
	})
}
