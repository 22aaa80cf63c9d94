package postgres_test

import (
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
)

// Of a batch that has failed, the messages that can have their effects get them in order,
// numbered without a gap, and those that Apply alone can deal with are left to it.
func TestApplyEach(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	seen, moderated := message(ann.Own()), message(ann.Own())
	mustApply(t, store, seen)
	mustExec(t, pool, `insert into moderated_reports (report_id, version, hidden, title, redacted_notes, anonymous, withdrawn) values ($1, 2, true, '', '{}', false, false)`, moderated.Value.Feed.ReportID)
	first, bad, second, nobody := message(ann.Own()), message(ann.Own()), message(ann.Own(), olga.Own()), message()
	bad.Value.Drafts[0].ID = first.Value.Drafts[0].ID
	batch := []postgres.Message{first, seen, bad, moderated, second, nobody}
	var failed []int
	applied, effects, err := store.Effects.ApplyEach(t.Context(), votes, batch, func(i int, _ error) { failed = append(failed, i) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []bool{true, false, false, false, true, true}; !slices.Equal(applied, want) {
		t.Errorf("applied are %v, want %v", applied, want)
	}
	if want := []int{2}; !slices.Equal(failed, want) {
		t.Errorf("failed are %v, want %v", failed, want)
	}
	if got, want := places(effects.Notifications), []string{"user:ann:2", "user:ann:3", "user:olga:1"}; !slices.Equal(got, want) || len(effects.Feed) != 3 {
		t.Errorf("notifications %v and %d feed events, want %v and 3", got, len(effects.Feed), want)
	}
	rest := mustApply(t, store, moderated)
	if got, want := places(rest.Batch.Notifications), []string{"user:ann:4"}; !slices.Equal(got, want) {
		t.Errorf("the moderated one gets %v, want %v", got, want)
	}
}
