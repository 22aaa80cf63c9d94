package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
)

// Each stream has numbers of its own, 1, 2, 3 …, in the order of the batch.
func TestApplyNumbersEachStream(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	own := notification.UserStream("ann")
	first := []postgres.Message{message(own), message(notification.Officials), message(own), message(), message(own, notification.Officials)}
	applied := mustApply(t, store, first...)
	want := []string{"user:ann:1", "role:official:1", "user:ann:2", "user:ann:3", "role:official:2"}
	if got := places(applied.Batch.Notifications); !slices.Equal(got, want) {
		t.Errorf("the first batch got the numbers %v, want %v", got, want)
	}
	if len(applied.Batch.Feed) != len(first) || applied.Seen != 0 {
		t.Errorf("%d feed events and %d seen, want %d and 0", len(applied.Batch.Feed), applied.Seen, len(first))
	}
	applied = mustApply(t, store, messages(2, own)...)
	if got, want := places(applied.Batch.Notifications), []string{"user:ann:4", "user:ann:5"}; !slices.Equal(got, want) {
		t.Errorf("the second batch got the numbers %v, want %v", got, want)
	}

	// Apply returns what the database has.
	stored, err := store.Streams.Since(t.Context(), []notification.Head{{Stream: own, Position: notification.Position{Seq: 3}}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range applied.Batch.Notifications {
		if got := stored[i]; got.ID != n.ID || got.Epoch != n.Epoch || !got.CreatedAt.Equal(n.CreatedAt) {
			t.Errorf("number %d: stored %+v, returned %+v", n.Seq, got, n)
		}
	}
	if n := count(t, pool, `select count(*) from notifications`); n != 7 {
		t.Errorf("%d notifications, want 7", n)
	}
}

// A message has its effect once in a queue, however often it comes.
func TestApplyOnce(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	old, fresh := message(ann.Own()), message(ann.Own())
	mustApply(t, store, old)
	applied := mustApply(t, store, old, fresh)
	if got, want := places(applied.Batch.Notifications), []string{"user:ann:2"}; applied.Seen != 1 || !slices.Equal(got, want) {
		t.Errorf("%d seen and the numbers %v, want 1 and %v", applied.Seen, got, want)
	}
	if len(applied.Batch.Feed) != 1 {
		t.Errorf("%d feed events, want that of the new message", len(applied.Batch.Feed))
	}
	if _, err := store.Effects.Apply(t.Context(), "another queue", []postgres.Message{message(), {ID: old.ID, Value: new(notification.Effect)}}); err != nil {
		t.Errorf("the same id in another queue: %v", err)
	}
	if n := count(t, pool, `select count(*) from processed_messages`); n != 4 {
		t.Errorf("%d processed messages, want 4", n)
	}
}

// A batch is applied whole or not at all.
func TestApplyIsAtomic(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	good, bad := message(ann.Own()), message(ann.Own())
	bad.Value.Drafts[0].ID = good.Value.Drafts[0].ID
	if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{good, bad}); err == nil {
		t.Fatal("two notifications of one id: no error, want one")
	}
	if n := count(t, pool, `select (select count(*) from processed_messages) + (select count(*) from notifications) + (select count(*) from streams)`); n != 0 {
		t.Errorf("%d rows are left of a batch that failed, want none", n)
	}
	applied := mustApply(t, store, good)
	if got, want := places(applied.Batch.Notifications), []string{"user:ann:1"}; !slices.Equal(got, want) {
		t.Errorf("after it the numbers are %v, want %v", got, want)
	}
}

// A message that another transaction is handling waits for the end of that
// transaction: it is a duplicate if it committed, and new if it did not.
func TestApplyWaitsForTheOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		end  string
		seen int
	}{{"commit", 1}, {"rollback", 0}} {
		t.Run(tt.end, func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			m := message(ann.Own())
			other, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Release()
			for _, sql := range []string{`begin`, `insert into processed_messages (consumer, message_id) values ('` + votes + `', '` + m.ID + `')`} {
				if _, err := other.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			type result struct {
				applied postgres.Applied
				err     error
			}
			done := make(chan result, 1)
			go func() {
				applied, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{m})
				done <- result{applied, err}
			}()
			waitForLock(t, pool)
			if _, err := other.Exec(t.Context(), tt.end); err != nil {
				t.Fatal(err)
			}
			if got := <-done; got.err != nil || got.applied.Seen != tt.seen {
				t.Errorf("%d seen and error %v, want %d and none", got.applied.Seen, got.err, tt.seen)
			}
		})
	}
}

// Transactions that share messages and streams, in any order, neither lock each
// other for good nor leave a gap, and a reader sees no number before the one
// below it.
func TestApplyConcurrently(t *testing.T) {
	t.Parallel()
	const workers, rounds, users = 6, 25, 4
	store, pool := newStore(t)
	batches := make([][]postgres.Message, rounds)
	for i := range batches {
		for range 8 {
			m := message(notification.UserStream(fmt.Sprint(rand.N(users))), notification.Officials)
			batches[i] = append(batches[i], m)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		for last := int64(0); ctx.Err() == nil; {
			page, err := store.Streams.Since(t.Context(), []notification.Head{{Stream: notification.Officials, Position: notification.Position{Seq: last}}}, 1000)
			if err != nil {
				t.Errorf("read: %v", err)
				return
			}
			for _, n := range page {
				if n.Seq != last+1 {
					t.Errorf("a reader saw number %d after %d", n.Seq, last)
				}
				last = n.Seq
			}
		}
	})
	for range workers { // each applies every batch, its messages in an order of its own
		writing.Go(func() {
			for _, b := range batches {
				b = slices.Clone(b)
				rand.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
				if _, err := store.Effects.Apply(t.Context(), votes, b); err != nil {
					t.Errorf("apply: %v", err)
				}
			}
		})
	}
	writing.Wait()
	stop()
	reading.Wait()
	if n := count(t, pool, `select count(*) from notifications`); n != rounds*8*2 {
		t.Errorf("%d notifications, want %d: each message once", n, rounds*8*2)
	}
	if n := count(t, pool, `
		select count(*) from streams s
		where last_seq <> (select count(*) from notifications n where n.stream_id = s.id)
		   or last_seq <> (select max(seq) from notifications n where n.stream_id = s.id)`); n != 0 {
		t.Errorf("%d streams have a gap in their numbers", n)
	}
}

// The effect closes the dead letter of its message and ends its starts, in its
// own transaction.
func TestApplyResolvesDeadLetters(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	m := message(ann.Own())
	for _, row := range []struct{ queue, id, state string }{
		{votes, m.ID, "replaying"}, {votes, m.ID, "discarded"}, {"another queue", m.ID, "open"}, {votes, "another id", "open"},
	} {
		mustExec(t, pool, `
			insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at, state)
			values ($1, $2, '', '', '{}', '{}', '', '', '', now(), now(), $3)`, row.queue, row.id, row.state)
	}
	mustExec(t, pool, `insert into message_starts (queue, message_id, starts) values ($1, $2, 1), ($1, 'another id', 1)`, votes, m.ID)
	mustApply(t, store, m)
	if n := count(t, pool, `select count(*) from dead_letters where state = 'resolved' and closed_at is not null and queue = $1 and message_id = $2`, votes, m.ID); n != 1 {
		t.Errorf("%d dead letters of the message are resolved, want the one that was replaying", n)
	}
	if n := count(t, pool, `select count(*) from dead_letters where state <> 'resolved'`); n != 3 {
		t.Errorf("%d other dead letters are as they were, want 3", n)
	}
	if n := count(t, pool, `select count(*) from message_starts`); n != 1 {
		t.Errorf("%d starts, want that of the other message", n)
	}
}

// A message that is published again is not shown again, although it is no longer known to be
// processed: its neighbours of the same batch, and another reader of it, get theirs.
func TestPublishedAgainIsNotShownAgain(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(*postgres.DB, []postgres.Message) (notification.Batch, error){
		"as a batch": func(store *postgres.DB, batch []postgres.Message) (notification.Batch, error) {
			applied, err := store.Effects.Apply(t.Context(), votes, batch)
			return applied.Batch, err
		},
		"one by one": func(store *postgres.DB, batch []postgres.Message) (effects notification.Batch, err error) {
			applied, effects, err := store.Effects.ApplyEach(t.Context(), votes, batch, func(i int, err error) { t.Errorf("message %d: %v", i, err) })
			for i, has := range applied {
				if !has && err == nil {
					var one postgres.Applied
					one, err = store.Effects.Apply(t.Context(), votes, batch[i:i+1])
					effects.Notifications = append(effects.Notifications, one.Batch.Notifications...)
				}
			}
			return effects, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			shown := message(ann.Own(), notification.Officials)
			mustApply(t, store, shown)
			mustExec(t, pool, `delete from processed_messages`)
			fresh := message(ann.Own())
			again(shown)
			shown.Value.Drafts = append(shown.Value.Drafts, notification.Draft{Stream: "user:ben", ID: notification.NewID(), Data: shown.Value.Feed})
			effects, err := apply(store, []postgres.Message{shown, fresh})
			if err != nil {
				t.Fatal(err)
			}
			got := places(effects.Notifications)
			if slices.Sort(got); !slices.Equal(got, []string{"user:ann:2", "user:ben:1"}) {
				t.Errorf("new notifications %v", got)
			}
			for stream, n := range map[notification.Stream]int{ann.Own(): 2, notification.Officials: 1, "user:ben": 1} {
				if ids := idsOf(t, pool, stream); len(ids) != n {
					t.Errorf("%s has %v, want %d", stream, ids, n)
				}
			}
			if n := count(t, pool, `select count(*) from processed_messages`); n != 2 {
				t.Errorf("%d messages are processed, want 2", n)
			}
		})
	}
}
