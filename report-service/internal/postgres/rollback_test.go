package postgres_test

import (
	"maps"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A change and its event stand or fall together: whichever statement fails,
// nothing is left, neither the row without the event nor the other way round.
func TestRollbackLeavesNeitherRowNorEvent(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		tables []string // which the change writes
		make   func(f *fixture, standing report.Filing) error
	}{
		"create": {[]string{"reports", "reporters", "status_history", "idempotency_keys", "outbox_messages"},
			func(f *fixture, _ report.Filing) error {
				rep := filing(draft(report.Public), bob, time.Now())
				_, err := f.Create(f.t.Context(), rep, once("key", "body"))
				return err
			}},
		"move": {[]string{"reports", "status_history", "outbox_messages"},
			func(f *fixture, standing report.Filing) error {
				_, err := f.Move(f.t.Context(), standing.ID, report.Move{To: report.Resolved, By: "olga"})
				return err
			}},
		"update": {[]string{"reports", "status_history", "outbox_messages", "connection_updates"},
			func(f *fixture, standing report.Filing) error {
				const crew = "0198c0de-0000-7000-8000-00000000000a"
				f.exec(`insert into connections (id, name, hash, private) values ($1, 'Work orders', '', true) on conflict do nothing`, crew)
				_, err := f.Update(f.t.Context(), standing.ID, report.Move{To: report.Resolved, Among: []report.Status{report.Resolved}, By: crew}, [32]byte{})
				return err
			}},
		"vote": {[]string{"reports", "votes", "outbox_messages"},
			func(f *fixture, standing report.Filing) error {
				_, err := f.Vote(f.t.Context(), standing.ID, bob.ID, report.Upvote)
				return err
			}},
	}
	for name, change := range changes {
		for _, table := range change.tables {
			t.Run(name+" fails at "+table, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				standing := f.file(ann, draft(report.Public))
				before, wakes := f.count(), f.wakes.Load()
				f.exec(`alter table ` + table + ` add constraint broken check (false) not valid`)

				if err := change.make(f, standing); err == nil {
					t.Fatal("the change succeeded")
				}
				if got := f.count(); !maps.Equal(got, before) {
					t.Errorf("rows %v, want %v", got, before)
				}
				if view, err := f.Get(t.Context(), standing.ID, report.User{}); err != nil || view.Version != 1 || view.Score != 0 || view.Status != report.Pending {
					t.Errorf("the report is %+v, error %v; want it as it was", view, err)
				}
				if got := f.wakes.Load(); got != wakes {
					t.Errorf("the relay was woken for nothing")
				}
				f.exec(`alter table ` + table + ` drop constraint broken`)
				if err := change.make(f, standing); err != nil {
					t.Errorf("after the repair: %v", err)
				}
			})
		}
	}
}
