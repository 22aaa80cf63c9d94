package postgres_test

import "testing"

// Starts are counted for each message of each queue, until it is finished.
func TestStarts(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	start := func(queue, id string, want int) {
		t.Helper()
		if got, err := store.Start(t.Context(), queue, id); err != nil || got != want {
			t.Errorf("start of %s in %s: %d (error %v), want %d", id, queue, got, err, want)
		}
	}
	start(votes, "a", 1)
	start(votes, "a", 2)
	start(votes, "b", 1)
	start("another queue", "a", 1)
	if err := store.Finish(t.Context(), votes, "a"); err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(t.Context(), votes, "unknown"); err != nil {
		t.Errorf("finish a message that was never started: %v", err)
	}
	start(votes, "a", 1)
	start(votes, "b", 2)
	start("another queue", "a", 2)
}
