package postgres_test

import (
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// After a restore the versions of all reports are above those that were lost,
// and a second time for the same restore changes nothing.
func TestRestoreRaisesVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	f.exec(`insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
		select gen_random_uuid(), 'x', '', 1, 'public', 'pending', 1 + n % 7, now(), now() from generate_series(1, 2500) n`)
	lost, err := f.Vote(t.Context(), filed.ID, bob.ID, report.Upvote)
	if err != nil {
		t.Fatal(err)
	}
	watch := restore.New(f.pool, f.upkeep.StartOver, zerolog.Nop())
	for n := range 3 {
		if _, err := watch.Declare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.upkeep.StartOver(t.Context(), n+1); err != nil {
			t.Fatal(err)
		}
		floor := (n + 1) * 1_000_000
		if low := f.number(`select count(*) from reports where version not between $1::bigint + 1 and $1::bigint + 8`, floor); low != 0 {
			t.Errorf("after restore %d, %d reports have another version than %d and what they had", n+1, low, floor)
		}
	}
	tally, err := f.Vote(t.Context(), filed.ID, bob.ID, report.Downvote)
	if err != nil || tally.Version <= lost.Version+1_000_000 {
		t.Errorf("the next change has version %d (error %v), want one that was never shown", tally.Version, err)
	}
	view, err := f.Get(t.Context(), filed.ID, report.User{})
	if err != nil {
		t.Fatal(err)
	}
	stale := report.Move{To: report.InProgress, By: "olga-id", IfMatch: ifMatch(t, `"2"`)}
	if _, err := f.Move(t.Context(), filed.ID, stale); err == nil {
		t.Error("a change for a version of before the restore was made")
	}
	stale.IfMatch = ifMatch(t, report.ETag(view.Version))
	if _, err := f.Move(t.Context(), filed.ID, stale); err != nil {
		t.Errorf("a change for the present version: %v", err)
	}
}

func ifMatch(t *testing.T, header string) report.Versions {
	t.Helper()
	v, err := report.ParseIfMatch(header)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
