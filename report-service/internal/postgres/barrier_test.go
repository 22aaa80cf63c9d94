package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A change was given up while its commit waited for a standby, which makes it
// visible on this server alone. Its repetition is answered only once a standby
// has it, because a failover would lose it.
func TestRepetitionWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	for _, tt := range []struct {
		name   string
		change func(f *fixture, id uuid.UUID) error
	}{
		{"filing", func(f *fixture, _ uuid.UUID) error {
			_, err := f.fileOnce(once("key", "body"))
			return err
		}},
		{"vote", func(f *fixture, id uuid.UUID) error {
			_, err := f.Vote(f.t.Context(), id, bob.ID, report.Upvote)
			return err
		}},
		{"status", func(f *fixture, id uuid.UUID) error {
			_, err := f.Move(f.t.Context(), id, report.Move{To: report.InProgress, By: olga.ID})
			return err
		}},
		{"bulk move", func(f *fixture, id uuid.UUID) error {
			number, earlier, err := f.workbench.BeginBulkMove(f.t.Context(), report.BulkMove{By: olga, To: report.InProgress, Reports: []uuid.UUID{id}}, once("key", "body"))
			if err != nil || earlier != nil {
				return err
			}
			return f.workbench.EndBulkMove(f.t.Context(), number, nil, once("key", "body"))
		}},
		{"duplicate", func(f *fixture, id uuid.UUID) error {
			return f.duplicates.Set(f.t.Context(), id, uuid.Nil, olga)
		}},
		{"assignment", func(f *fixture, id uuid.UUID) error {
			return f.workbench.Assign(f.t.Context(), id, report.Assignment{Assignee: &olga}, olga)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := openFixture(t, server.Create(migrations.Report))
			f.start()
			id := f.file(ann, draft(report.Public)).ID
			standby := server.AwaitStandby()
			defer standby.Release()

			first := make(chan error, 1)
			go func() { first <- tt.change(f, id) }()
			eventually.True(f.t, "the first is given up", func() bool {
				standby.GiveUp()
				return len(first) > 0
			})
			if err := <-first; err != nil {
				t.Fatalf("the first: %v", err)
			}
			again := make(chan error, 1)
			go func() { again <- tt.change(f, id) }()
			eventually.True(f.t, "the repetition waits for the standby, or is answered", func() bool {
				return standby.Waits() > 0 || len(again) > 0
			})
			if len(again) > 0 {
				t.Fatalf("the repetition was answered (error %v) with what no standby has", <-again)
			}
			standby.Release()
			select {
			case err := <-again:
				if err != nil {
					t.Errorf("the repetition: %v", err)
				}
			case <-time.After(eventually.Patience):
				t.Error("the repetition was never answered")
			}
		})
	}
}
