package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The effect of a message was given up while its commit waited for a standby,
// which makes it visible on this server alone. When the message comes again it
// is known as handled, and acknowledged, only once a standby has its effect: a
// failover would lose it.
func TestSeenMessageWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	own := message(ann.Own())
	heard := webhook.Event{MessageID: uuid.NewString(), Type: string(event.VoteReceivedKey), ReportID: uuid.New(), ReportVersion: 1, Body: []byte("{}")}
	for _, tt := range []struct {
		name   string
		handle func(store *postgres.DB) error
	}{
		{"notification", func(store *postgres.DB) error {
			_, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{own})
			return err
		}},
		{"webhook", func(store *postgres.DB) error {
			_, _, err := store.Endpoints.Expand(t.Context(), "queue.webhooks", []webhook.Event{heard})
			return err
		}},
		{"follow", func(store *postgres.DB) error {
			return store.Follows.Follow(t.Context(), ann, heard.ReportID)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool, err := pgxpool.New(context.WithoutCancel(t.Context()), server.Create(migrations.Notification))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			store := postgres.New(pool, postgres.Options{})
			standby := server.AwaitStandby()
			defer standby.Release()

			first := make(chan error, 1)
			go func() { first <- tt.handle(store) }()
			eventually.True(t, "the first is given up", func() bool {
				standby.GiveUp()
				return len(first) > 0
			})
			if err := <-first; err != nil {
				t.Fatalf("the first: %v", err)
			}
			again := make(chan error, 1)
			go func() { again <- tt.handle(store) }()
			eventually.True(t, "the message waits for the standby, or is handled", func() bool {
				return standby.Waits() > 0 || len(again) > 0
			})
			if len(again) > 0 {
				t.Fatalf("the message counts as handled (error %v), though no standby has its effect", <-again)
			}
			standby.Release()
			if err := <-again; err != nil {
				t.Errorf("the message: %v", err)
			}
		})
	}
}
