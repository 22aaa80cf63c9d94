package sse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A client that comes back gets exactly what it missed, whether the hub still
// has it or only the database.
func TestResumeIsExact(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		for _, missed := range []int{0, 1, 64, 65, 250, 1000} {
			t.Run(fmt.Sprint(missed), func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, config(w))
				first := h.open("/ann", "")
				epoch := seqEpoch(expect(t, first, "ready").ID)
				h.tell("ann")
				cursor := expect(t, first, "notification").ID
				first.Close()
				for users := missed; users > 0; users -= 50 {
					batch := make([]string, min(users, 50))
					for i := range batch {
						batch[i] = "ann"
					}
					h.tell(batch...)
				}
				s := h.open("/ann", cursor)
				ready, head := expect(t, s, "ready"), fmt.Sprintf("v1.%s.%d", epoch, missed+1)
				if ready.ID != cursor || !strings.Contains(string(ready.Data), head) {
					t.Errorf("ready has id %s and data %s, want the cursor %s and the present %s", ready.ID, ready.Data, cursor, head)
				}
				for seq := range int64(missed) {
					expectSeqs(t, s, epoch, seq+2)
				}
				h.tell("ann") // and goes on live
				expectSeqs(t, s, epoch, int64(missed)+2)
			})
		}
	})
}

// A cursor that does not serve is answered with a reset, whose id is the
// present, and then with what comes.
func TestReset(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		many := make([]string, 1001)
		for i := range many {
			many[i] = "ann"
		}
		epoch := h.commit(many...).Notifications[0].Epoch
		for _, tt := range []struct{ name, cursor, why string }{
			{"nonsense", "nonsense", "unknown_cursor"},
			{"another life", "v1.00000000.5", "unknown_cursor"},
			{"the future", "v1." + epoch + ".1002", "unknown_cursor"},
			{"of an official", "v1." + epoch + ".1.abc.1", "unknown_cursor"},
			{"too far behind", "v1." + epoch + ".0", "too_far_behind"},
		} {
			s := h.open("/ann", tt.cursor)
			reset := expect(t, s, "reset")
			want := "v1." + epoch + ".1001"
			if reset.ID != want || !strings.Contains(string(reset.Data), tt.why) {
				t.Errorf("%s: reset with id %s and %s, want %s and %s", tt.name, reset.ID, reset.Data, want, tt.why)
			}
			if e := expect(t, s, "ready"); e.ID != want {
				t.Errorf("%s: ready with id %s, want %s", tt.name, e.ID, want)
			}
		}
	})
}

// Notifications that were deleted cannot be replayed, and the client is reset.
func TestResetWhenDeleted(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		epoch := h.commit("ann", "ann", "ann", "ann").Notifications[0].Epoch
		if _, err := h.pool.Exec(t.Context(), `delete from notifications where seq <= 3`); err != nil {
			t.Fatal(err)
		}
		s := h.open("/ann", "v1."+epoch+".1")
		expect(t, s, "ready")
		reset := expect(t, s, "reset")
		if want := "v1." + epoch + ".4"; reset.ID != want || !strings.Contains(string(reset.Data), "too_old") {
			t.Errorf("reset with id %s and %s, want %s and too_old", reset.ID, reset.Data, want)
		}
		h.tell("ann")
		expectSeqs(t, s, epoch, 5)
	})
}

// After a restore of the database the numbers mean other notifications, and are
// not mistaken for the old ones.
func TestResetAfterRestore(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		s := h.open("/ann", "")
		expect(t, s, "ready")
		h.tell("ann", "ann")
		expect(t, s, "notification")
		cursor := expect(t, s, "notification").ID

		if _, err := h.pool.Exec(t.Context(), `
			with gone as (delete from notifications where seq = 2) update streams set last_seq = 1`); err != nil {
			t.Fatal(err)
		}
		h.hub.Compare()
		expectEnd(t, s)
		s = h.open("/ann", cursor)
		expect(t, s, "reset")
		expect(t, s, "ready")

		if _, err := h.pool.Exec(t.Context(), `update streams set epoch = 'another'`); err != nil {
			t.Fatal(err)
		}
		h.tell("ann")
		expectEnd(t, s)
		s = h.open("/ann", cursor)
		if e := expect(t, s, "reset"); e.ID != "v1.another.2" {
			t.Errorf("reset with id %s, want v1.another.2", e.ID)
		}
	})
}

// A client may know more than the hub: it was at another replica, or has read
// the list. It does not get again what the hub catches up with.
func TestClientAheadOfHub(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		behind := h.open("/ann", "")
		epoch := seqEpoch(expect(t, behind, "ready").ID)
		h.commit("ann", "ann", "ann") // not announced
		ahead := h.open("/ann", "v1."+epoch+".3")
		expect(t, ahead, "ready")
		expectSeqs(t, behind, epoch, 1, 2, 3)
		h.tell("ann")
		expectSeqs(t, behind, epoch, 4)
		expectSeqs(t, ahead, epoch, 4)
	})
}

func seqEpoch(id string) string { return strings.Split(id, ".")[1] }

// Clients that come and go while the stream is busy miss nothing and see
// nothing twice: the switch from the database to live has no gap.
func TestSwitchHasNoGap(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		const events, rounds = 1500, 40
		h := newHarness(t, config(w))
		h.commit("ann")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range events {
				b := h.commit("ann")
				if i%7 != 0 { // some are lost
					h.hub.Deliver(b, time.Now())
				}
			}
		}()
		cursor, cut := "", 0
		for range rounds {
			s := h.open("/ann", cursor)
			ready := expect(t, s, "ready")
			if cursor != "" && ready.ID != cursor {
				t.Fatalf("ready with id %s, want %s", ready.ID, cursor)
			}
			last := seqOf(t, ready.ID)
			for range 30 {
				e, err := s.Next()
				if err != nil { // the hub cuts clients off that a busy machine keeps from reading
					cut++
					break
				}
				if e.Type == "hb" {
					continue
				}
				if got := seqOf(t, e.ID); e.Type != "notification" || got != last+1 {
					t.Fatalf("%s with number %d after %d", e.Type, got, last)
				}
				last++
				cursor = e.ID
				if last == events+1 {
					break
				}
			}
			s.Close()
			if last == events+1 {
				break
			}
		}
		<-done
		if cut > rounds/4 {
			t.Errorf("%d of %d streams were cut off", cut, rounds)
		}
	})
}

func seqOf(t *testing.T, id string) int64 {
	t.Helper()
	var seq int64
	parts := strings.Split(id, ".")
	if _, err := fmt.Sscan(parts[len(parts)-1], &seq); err != nil {
		t.Fatalf("id %q: %v", id, err)
	}
	return seq
}

// A report is hidden, and some clients come back after it, to a hub that had passed
// on what they missed. None of them gets its words: neither from what the hub kept,
// nor from what another replica announces late, nor on the feed.
func TestForgetsWhatWasModerated(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		id := uuid.New()
		of := func(m event.Message) []postgres.Message {
			return []postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, "ann")}}
		}
		about := func(version int64, title string) event.Subject {
			return event.Subject{ReportID: id, ReportVersion: version, ReportTitle: title, Timestamp: time.Now().Unix()}
		}
		vote := func(version int64) []postgres.Message {
			return of(&event.VoteReceived{Subject: about(version, "Dark Zebra"), VoterID: "ben", VoteType: event.Upvote, NewScore: new(version)})
		}
		staying, feed := h.open("/ann", ""), h.open("/feed", "")
		epoch := seqEpoch(expect(t, staying, "ready").ID)
		expect(t, feed, "ready")
		h.hub.Deliver(h.apply(vote(2)), time.Now())
		if e := expect(t, staying, "notification"); !strings.Contains(string(e.Data), "Zebra") {
			t.Fatalf("before it is hidden the notification is %s", e.Data)
		}
		expect(t, feed, "notification")
		late := h.apply(vote(3)) // committed, and not announced yet
		hidden := h.apply(of(&event.ReportModerated{Subject: about(4, "7KQ2-M9XB"), CategoryID: 1, Action: event.Hidden, Hidden: true}))
		h.hub.Deliver(hidden, time.Now())
		h.hub.Deliver(late, time.Now())
		for _, seq := range []int64{2, 3} {
			e := expect(t, staying, "notification")
			if e.ID != fmt.Sprintf("v1.%s.%d", epoch, seq) || strings.Contains(string(e.Data), "Zebra") {
				t.Errorf("whoever stayed gets %s as %s, want number %d without the words", e.Data, e.ID, seq)
			}
		}
		if e := expect(t, feed, "notification"); strings.Contains(string(e.Data), "Zebra") || !strings.Contains(string(e.Data), `"action":"hidden"`) {
			t.Errorf("the feed gets %s, want that the report is hidden", e.Data)
		}
		back := h.open("/ann", "v1."+epoch+".0")
		expect(t, back, "ready")
		for seq := int64(1); seq <= 3; seq++ {
			e := expect(t, back, "notification")
			if e.ID != fmt.Sprintf("v1.%s.%d", epoch, seq) || strings.Contains(string(e.Data), "Zebra") {
				t.Errorf("whoever comes back gets %s as %s, want number %d without the words", e.Data, e.ID, seq)
			}
		}
		// The feed has passed on nothing of what came late.
		h.hub.Deliver(h.commitReport(), time.Now())
		if e := expect(t, feed, "notification"); !strings.Contains(string(e.Data), "Lamp") {
			t.Errorf("the feed goes on with %s", e.Data)
		}
	})
}
