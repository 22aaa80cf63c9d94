package postgres_test

import (
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
)

// A change keeps what it does not name, and begins with what the queue has
// where no operator has set anything.
func TestChangePool(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	initial := consumer.PoolSettings{Concurrency: 4, Prefetch: 10}
	for _, step := range []struct {
		name   string
		change consumer.PoolChange
		want   consumer.PoolSettings
	}{
		{"more workers", consumer.PoolChange{Concurrency: new(8)}, consumer.PoolSettings{Concurrency: 8, Prefetch: 10}},
		{"a pause", consumer.PoolChange{Paused: new(true)}, consumer.PoolSettings{Concurrency: 8, Prefetch: 10, Paused: true}},
		{"all", consumer.PoolChange{Concurrency: new(1), Prefetch: new(2), Paused: new(false)}, consumer.PoolSettings{Concurrency: 1, Prefetch: 2}},
	} {
		got, err := store.ChangePool(t.Context(), "pavel", votes, initial, step.change)
		if err != nil || got != step.want {
			t.Errorf("%s: %+v (error %v), want %+v", step.name, got, err, step.want)
		}
		pools, err := store.PoolSettings(t.Context())
		if err != nil || len(pools) != 1 || pools[votes] != step.want {
			t.Errorf("%s: stored are %+v (error %v), want %+v", step.name, pools, err, step.want)
		}
	}
	if _, err := store.ChangePool(t.Context(), "pavel", votes, initial, consumer.PoolChange{Concurrency: new(65)}); err == nil {
		t.Error("65 workers: no error, want that of the table's check")
	}
	if got, want := actions(t, store), []string{"pavel change_pool", "pavel change_pool", "pavel change_pool"}; !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}
