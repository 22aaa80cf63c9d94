package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/event"
)

// votes is the queue that the messages of these tests come from.
const votes = "votes"

// ann reads her own notifications, olga those of the officials, too.
var (
	ann  = notification.Reader{UserID: "ann"}
	olga = notification.Reader{UserID: "olga", Official: true}
)

func newStore(t *testing.T) (*postgres.DB, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Notification(t)
	return postgres.New(pool, postgres.Options{}), pool
}

// message returns a message that has a notification for each of the streams.
func message(streams ...notification.Stream) postgres.Message {
	data := notification.Data{Type: event.VoteReceivedKey, ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", HappenedAt: time.Now().UTC()}
	effect := &notification.Effect{Feed: data, Public: true}
	for _, s := range streams {
		effect.Drafts = append(effect.Drafts, notification.Draft{Stream: s, ID: uuid.Must(uuid.NewV7()), Data: data})
	}
	return postgres.Message{ID: uuid.NewString(), Value: effect}
}

// messages returns n messages, each with one notification for the stream.
func messages(n int, stream notification.Stream) []postgres.Message {
	batch := make([]postgres.Message, n)
	for i := range batch {
		batch[i] = message(stream)
	}
	return batch
}

// again returns the messages as they are when they are published again: their drafts have
// other ids.
func again(batch ...postgres.Message) []postgres.Message {
	for _, m := range batch {
		for i := range m.Value.Drafts {
			m.Value.Drafts[i].ID = notification.NewID()
		}
	}
	return batch
}

func mustApply(t *testing.T, store *postgres.DB, batch ...postgres.Message) postgres.Applied {
	t.Helper()
	applied, err := store.Effects.Apply(t.Context(), votes, batch)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// places returns "stream:number" of each notification.
func places(list []notification.Notification) []string {
	result := make([]string, len(list))
	for i, n := range list {
		result[i] = fmt.Sprintf("%s:%d", n.Stream, n.Seq)
	}
	return result
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitForLock returns when a connection to the database waits for a lock.
func waitForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	for waiting := false; !waiting; {
		err := pool.QueryRow(ctx, `
			select exists (select from pg_stat_activity
			  where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting)
		if err != nil {
			t.Fatalf("waiting for a lock: %v", err)
		}
	}
}
