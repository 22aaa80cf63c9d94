package consumer

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/audit"
)

// A change keeps what it does not name, and begins with what the queue has
// where no operator has set anything.
func TestChangePool(t *testing.T) {
	t.Parallel()
	const votes = "votes"
	store := &store{pool: pgtest.Notification(t)}
	initial := PoolSettings{Concurrency: 4, Prefetch: 10}
	for _, step := range []struct {
		name   string
		change PoolChange
		want   PoolSettings
	}{
		{"more workers", PoolChange{Concurrency: new(8)}, PoolSettings{Concurrency: 8, Prefetch: 10}},
		{"a pause", PoolChange{Paused: new(true)}, PoolSettings{Concurrency: 8, Prefetch: 10, Paused: true}},
		{"all", PoolChange{Concurrency: new(1), Prefetch: new(2), Paused: new(false)}, PoolSettings{Concurrency: 1, Prefetch: 2}},
	} {
		got, err := store.changePool(t.Context(), "pavel", votes, initial, step.change)
		if err != nil || got != step.want {
			t.Errorf("%s: %+v (error %v), want %+v", step.name, got, err, step.want)
		}
		pools, err := store.poolSettings(t.Context())
		if err != nil || len(pools) != 1 || pools[votes] != step.want {
			t.Errorf("%s: stored are %+v (error %v), want %+v", step.name, pools, err, step.want)
		}
	}
	if _, err := store.changePool(t.Context(), "pavel", votes, initial, PoolChange{Concurrency: new(65)}); err == nil {
		t.Error("65 workers: no error, want that of the table's check")
	}
	entries, err := audit.List(t.Context(), store.pool, 0, 10)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries in the audit (error %v), want 3", len(entries), err)
	}
	for _, e := range entries {
		if e.Actor != "pavel" || e.Action != "change_pool" || e.Queue == nil || *e.Queue != votes {
			t.Errorf("audit entry %+v, want a change of the pool of %s by pavel", e, votes)
		}
	}
}

// Starts are counted for each message of each queue, until it is finished.
func TestStarts(t *testing.T) {
	t.Parallel()
	const votes = "votes"
	store := &store{pool: pgtest.Notification(t)}
	start := func(queue, id string, want int) {
		t.Helper()
		if got, err := store.start(t.Context(), queue, id); err != nil || got != want {
			t.Errorf("start of %s in %s: %d (error %v), want %d", id, queue, got, err, want)
		}
	}
	start(votes, "a", 1)
	start(votes, "a", 2)
	start(votes, "b", 1)
	start("another queue", "a", 1)
	if err := store.finish(t.Context(), votes, "a"); err != nil {
		t.Fatal(err)
	}
	if err := store.finish(t.Context(), votes, "unknown"); err != nil {
		t.Errorf("finish a message that was never started: %v", err)
	}
	start(votes, "a", 1)
	start(votes, "b", 2)
	start("another queue", "a", 2)
	for range 3 {
		if err := store.giveBack(t.Context(), votes, "b"); err != nil {
			t.Fatal(err)
		}
		start(votes, "b", 2)
	}
	for range 3 { // more often than it was started
		if err := store.giveBack(t.Context(), votes, "b"); err != nil {
			t.Fatal(err)
		}
	}
	start(votes, "b", 1)
	start(votes, "a", 2)
	if err := store.await(t.Context(), votes, []string{"c", "a"}); err != nil {
		t.Fatal(err)
	}
	start(votes, "a", 1)
	start(votes, "c", 1)
}
