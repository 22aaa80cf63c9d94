package reconciliation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Operators get each message that a group has not found once, with its kind, page by
// page, and none that was found.
func TestMessagesThatWereNotFoundAreListed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	var lost []uuid.UUID
	for number := range int64(2) {
		m, ids := h.next(5)
		h.receive(m)
		h.process(ids[:2]...)
		h.check(number+1, len(h.waits))
		lost = append(lost, ids[2:]...)
	}
	awaited, ids := h.next(1)
	h.receive(awaited)
	h.check(3, 1)
	lost = append(lost, ids...)
	fine, ids := h.next(1)
	h.receive(fine)
	h.process(ids...)
	h.check(4, 1)
	h.exec(`insert into reconciliation_starts (consumer_group, restores, started_at) values ('gone', 0, now() - interval '1 year')`)

	results := NewResults(h.pool, ToOperations)
	var got []uuid.UUID
	selection := Selection{Limit: 2}
	for {
		page, err := results.Messages(t.Context(), selection)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			got = append(got, m.ID)
			if m.Group != testGroup || m.Key != event.VoteReceivedKey || m.To.Sub(m.From) != time.Minute {
				t.Errorf("message is %+v, want a vote of %s, published in a minute", m, testGroup)
			}
		}
		if len(page) < selection.Limit {
			break
		}
		last := page[len(page)-1]
		selection.After = Position{last.To, last.Group, last.ID}
	}
	if !slices.Equal(got, lost) {
		t.Errorf("listed are %v, want %v", got, lost)
	}
	page, err := results.Messages(t.Context(), Selection{Group: testGroup, State: Waiting, Limit: 10})
	if err != nil || len(page) != 1 || page[0].ID != lost[6] {
		t.Errorf("those that may be on their way are %v (%v), want %v", page, err, lost[6])
	}
	groups, err := results.Recent(t.Context())
	if err != nil || len(groups) != 1 {
		t.Fatalf("groups are %v (%v), want %s alone", groups, err, testGroup)
	}
	if g := groups[0]; g.Group != testGroup || g.Missing != 6 || g.Awaited != 1 || !g.Compared.Equal(fine.Until.Truncate(time.Microsecond)) {
		t.Errorf("summary is %+v, want 6 missing, 1 awaited, compared until %v", g, fine.Until)
	}
}

// Messages that an operator has closed are neither listed nor counted, also after the next
// check; one that may be on its way stays, and so does one of which the next check knows.
func TestClosedMessagesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	m, lost := h.next(3)
	h.receive(m)
	h.check(1, len(h.waits))
	awaited, onItsWay := h.next(1)
	h.receive(awaited)
	h.check(2, 1)
	results := NewResults(h.pool, ToOperations)
	closed, err := results.Close(t.Context(), Closing{
		Actor: "otto", Group: testGroup, Reason: "a queue was purged", Messages: []uuid.UUID{lost[0], lost[1], onItsWay[0], uuid.New()},
	})
	if err != nil || closed != 2 {
		t.Fatalf("closed %d (%v), want 2", closed, err)
	}
	listed := func() (ids []uuid.UUID) {
		page, err := results.Messages(t.Context(), Selection{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			ids = append(ids, m.ID)
		}
		return ids
	}
	want := []uuid.UUID{lost[2], onItsWay[0]}
	if got := listed(); !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	h.wantFigures(1, 0, 0)
	h.check(1, 1)
	if got := listed(); !slices.Equal(got, want) {
		t.Errorf("after another check listed are %v, want %v", got, want)
	}
	var audited int
	err = h.pool.QueryRow(t.Context(), `
		select jsonb_array_length(detail->'message_ids') from operations_audit
		where action = 'loss_close' and actor = 'otto' and detail->>'reason' = 'a queue was purged'`).Scan(&audited)
	if err != nil || audited != 2 {
		t.Errorf("the audit has %d messages (%v), want 2", audited, err)
	}
	h.process(lost[2])
	if state, _ := h.check(1, 1); state != Missing {
		t.Errorf("with what is closed alone the manifest is %s, want missing", state)
	}
	h.wantFigures(0, 0, 0)
}
