package group_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// faults are the errors of messages, each until it has come for so many times.
type faults struct {
	mu   sync.Mutex
	left map[string]int
	code map[string]string
}

func (f *faults) apply(_ context.Context, _ pgx.Tx, messages []consumer.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range messages {
		if f.left[m.ID] > 0 {
			if len(messages) == 1 { // otherwise each is tried alone next
				f.left[m.ID]--
			}
			return &pgconn.PgError{Code: f.code[m.ID]}
		}
	}
	return nil
}

// Whatever becomes of a message, the group accounts for it: handled, handled at a second
// attempt, dead, discarded, replayed, or parked. One that vanished is missing, and the
// group says so.
func TestGroupAccountsForEveryMessage(t *testing.T) {
	t.Parallel()
	const queue = "queue.accounts"
	h := consumertest.New(t, pgtest.Notification(t))
	votes := h.Votes(10, "alice")
	retried, dead, discarded, replayed, parked, vanished := votes[0].ID, votes[1].ID, votes[2].ID, votes[3].ID, votes[4].ID, votes[5].ID
	votes[4].Headers[event.NotBeforeHeader] = time.Now().Add(time.Hour).UnixMilli()
	const transient, permanent = "55P03", "22023"
	f := &faults{
		left: map[string]int{retried: 1, dead: 1, discarded: 1, replayed: 1},
		code: map[string]string{retried: transient, dead: permanent, discarded: permanent, replayed: permanent},
	}
	start(t, h.Pool, h.URL, consumer.Group{
		Name: "accounts", Queues: []topology.Queue{{Name: queue, Keys: []event.Key{event.VoteReceivedKey}}},
		Effect: consumer.InTx(h.Pool, f.apply),
	})
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := h.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	h.EventuallyEqual("starts of comparing", 1, func() int { return h.Count(`select count(*) from reconciliation_starts`) })
	exec(`update reconciliation_starts set started_at = now() - interval '1 day'`)
	h.EventuallyEqual("consumers of "+queue, consumer.Defaults().Workers, func() int {
		q, _ := h.Inspect(queue)
		return q.Consumers
	})
	h.Publish(votes...)
	h.EventuallyEqual("open dead letters", 3, func() int { return h.Count(`select count(*) from dead_letters where state = 'open'`) })
	if _, err := h.Letters.Discard(t.Context(), "operator", deadletter.Selection{MessageID: discarded}, "a test"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Letters.CreateReplay(t.Context(), "operator", deadletter.ReplayRequest{Selection: deadletter.Selection{MessageID: replayed}}); err != nil {
		t.Fatal(err)
	}
	h.EventuallyEqual("handled messages", len(votes)-3, func() int { return h.Count(`select count(*) from processed_messages where consumer = $1`, queue) })
	h.EventuallyEqual("parked messages", 1, func() int { return h.Count(`select count(*) from delayed_messages where message_id = $1`, parked) })
	exec(`delete from processed_messages where message_id = $1`, vanished)

	var ids []uuid.UUID
	for _, m := range votes {
		ids = append(ids, uuid.MustParse(m.ID))
	}
	body, err := json.Marshal(event.Manifest{
		Number: 1, From: time.Now().Add(-time.Minute), Until: time.Now(),
		Messages: map[event.Key]event.IDs{event.VoteReceivedKey: event.NewIDs(ids)},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Publish(consumertest.Message{ID: "manifest", Key: event.ManifestKey, Body: body})
	var state string
	var missing []uuid.UUID
	h.Eventually("the manifest to be judged", func() string {
		exec(`update reconciliation_manifests set check_at = now() where check_at > now()`) // nobody waits for five minutes
		_ = h.Pool.QueryRow(t.Context(), `select state, missing from reconciliation_manifests`).Scan(&state, &missing)
		if state != "missing" {
			return "state " + state
		}
		return ""
	})
	if want := []uuid.UUID{uuid.MustParse(vanished)}; !slices.Equal(missing, want) {
		t.Errorf("missing are %v, want %v", missing, want)
	}
	h.Publish(votes[5]) // again
	h.Eventually("the message to be found", func() string {
		exec(`update reconciliation_manifests set check_at = now() where check_at > now()`)
		if h.Count(`select count(*) from reconciliation_manifests where state = 'complete'`) == 0 {
			return "not yet"
		}
		return ""
	})
}
