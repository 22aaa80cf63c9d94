package group_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A group acknowledges a message as done before only once that effect is on a standby,
// also where the first worker was given up while its commit waited for one.
func TestWhatWasDoneBeforeWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	const queue = "queue.tests"
	id, now := uuid.Must(uuid.NewV7()).String(), time.Now()
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, pool *pgxpool.Pool) error
	}{
		{"effect in a transaction", func(ctx context.Context, pool *pgxpool.Pool) error {
			effect := consumer.InTx(pool, func(context.Context, pgx.Tx, []consumer.Message) error { return nil })
			_, err := effect.Apply(ctx, queue, []consumer.Message{{ID: id}})
			return err
		}},
		{"parked message", func(ctx context.Context, pool *pgxpool.Pool) error {
			waits := delay.Message{ID: id, DueAt: now.Add(time.Hour), Body: []byte("{}"), Headers: json.RawMessage("{}")}
			_, err := delay.NewStore(pool).Park(ctx, queue, []delay.Message{waits}, false, false)
			return err
		}},
		{"archived dead letter", func(ctx context.Context, pool *pgxpool.Pool) error {
			return deadletter.NewStore(pool).Archive(ctx, []deadletter.Letter{{
				Queue: queue, MessageID: id, Body: []byte("{}"), Headers: json.RawMessage("{}"), FirstFailedAt: now, FailedAt: now,
			}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.WithoutCancel(t.Context())
			pool, err := pgxpool.New(ctx, server.Create(migrations.Notification))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			standby := server.AwaitStandby()
			defer standby.Release()
			first, again := make(chan error, 1), make(chan error, 1)
			go func() { first <- tt.do(ctx, pool) }()
			eventually.True(t, "the first is given up", func() bool { standby.GiveUp(); return len(first) > 0 })
			if err := <-first; err != nil {
				t.Fatalf("the first: %v", err)
			}
			go func() { again <- tt.do(ctx, pool) }()
			eventually.True(t, "it waits for the standby, or is done", func() bool { return standby.Waits() > 0 || len(again) > 0 })
			if len(again) > 0 {
				t.Fatalf("it counts as done (error %v), though no standby has it", <-again)
			}
			standby.Release()
			if err := <-again; err != nil {
				t.Errorf("the second: %v", err)
			}
		})
	}
}
