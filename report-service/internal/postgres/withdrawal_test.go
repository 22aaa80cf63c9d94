package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// A withdrawn report is hidden from everybody but officials and its reporter, without
// votes, clock and duplicates, until it is deleted with all that belongs to it.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	duplicate := f.file(bob, draft(report.Public))
	if _, err := f.Vote(t.Context(), filed.ID, "ben", report.Upvote); err != nil {
		t.Fatal(err)
	}
	olga := report.Official{ID: "olga", Name: "Olga"}
	if err := f.duplicates.Set(t.Context(), duplicate.ID, filed.ID, olga); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "ben", olga.ID, bob.ID} {
		_, err := f.Withdraw(t.Context(), filed.ID, other, report.Versions{})
		wantKind(t, err, "not found")
	}
	view, err := f.Withdraw(t.Context(), filed.ID, ann.ID, report.Versions{})
	if err != nil {
		t.Fatal(err)
	}
	if view.WithdrawnAt == nil || view.HiddenReason != report.WithdrawnReason || view.Score != 0 || view.Version != 3 {
		t.Errorf("the reporter sees %+v", view)
	}
	if again, err := f.Withdraw(t.Context(), filed.ID, ann.ID, report.Versions{}); err != nil || again.Version != 3 {
		t.Errorf("a second time: version %d, error %v", again.Version, err)
	}
	rows := f.rowsOf(event.ModeratedKey)
	if len(rows) != 1 {
		t.Fatalf("announced %d times", len(rows))
	}
	m, err := event.Decode(event.ModeratedKey, rows[0].Payload)
	if m, ok := m.(*event.ReportModerated); err != nil || !ok || m.Action != event.Withdrawn || !m.Hidden || m.Note != "" || m.ReportTitle != report.Reference(filed.ID) {
		t.Errorf("announced as %s, error %v", rows[0].Payload, err)
	}
	for reader, sees := range map[report.User]bool{{}: false, {ID: "ben"}: false, {ID: ann.ID}: true, {ID: olga.ID, Official: true}: true} {
		if _, err := f.Get(t.Context(), filed.ID, reader); (err == nil) != sees {
			t.Errorf("%+v: error %v", reader, err)
		}
	}
	for filter, want := range map[*report.Filter]int{{}: 1, {Hidden: true}: 0, {Withdrawn: true}: 1} {
		queue, err := f.workbench.Queue(t.Context(), *filter, nil, 10)
		counts, countErr := f.workbench.Counts(t.Context(), *filter)
		if err != nil || countErr != nil || len(queue.Tasks) != want || counts.Total != int64(want) {
			t.Errorf("%+v: %d reports, %d counted, errors %v and %v", filter, len(queue.Tasks), counts.Total, err, countErr)
		}
	}
	if n := f.number(`select count(*) from reports where duplicate_of is not null or withdrawn_at is not null and (due_at is not null or clock_since is not null)`); n != 0 {
		t.Errorf("%d reports have an original, or a clock that runs", n)
	}
	if n := f.number(`select count(*) from votes`); n != 0 {
		t.Errorf("%d votes are left", n)
	}
}

// Nobody brings a withdrawn report back, or works on it.
func TestWithdrawnStaysSo(t *testing.T) {
	t.Parallel()
	f, filed, duplicate := withdrawn(t)
	olga := report.Official{ID: "olga", Name: "Olga"}
	err := f.moderation.Unhide(t.Context(), filed.ID, report.Versions{}, olga)
	wantKind(t, err, report.Hidden)
	_, err = f.Move(t.Context(), filed.ID, report.Move{To: report.InProgress, By: olga.ID})
	wantKind(t, err, report.Hidden)
	if err := f.duplicates.Set(t.Context(), duplicate.ID, filed.ID, olga); err == nil {
		t.Error("a report became a duplicate of a withdrawn one")
	}
	if err := scheduletest.Run(t.Context(), f.pool, f.deadlines.DeadlinesJob()); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`select count(*) from reports where withdrawn_at is not null and clock_since is not null`); n != 0 {
		t.Error("its clock was started again")
	}
}

// A withdrawn report is deleted after its month, the files of its photos first.
func TestWithdrawnEnds(t *testing.T) {
	t.Parallel()
	f, filed, duplicate := withdrawn(t)
	f.exec(`insert into photos (id, report_id, state, official, bytes, digest) values (gen_random_uuid(), $1, 'ready', false, 1, '')`, filed.ID)
	remove := func() {
		t.Helper()
		for _, task := range (upkeep.Retention{}).Tasks() {
			if task.Kind != "withdrawn" && task.Kind != "withdrawn_photos" {
				continue
			}
			tx, err := f.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := task.Remove(t.Context(), tx, time.Duration(task.Keep), 0, 100); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() int { return f.number(`select count(*) from reports where withdrawn_at is not null`) }
	remove()
	if left() != 1 || f.number(`select count(*) from photos where state = 'ready'`) != 1 {
		t.Error("it was deleted on the first day")
	}
	f.exec(`update reports set withdrawn_at = now() - interval '31 days' where withdrawn_at is not null`)
	remove()
	if left() != 1 {
		t.Error("it was deleted before the files of its photos")
	}
	leftovers, err := f.checks.Leftovers(t.Context(), 10)
	if err != nil || len(leftovers) != 1 || !leftovers[0].Pictures {
		t.Fatalf("files to delete: %+v, error %v", leftovers, err)
	}
	if err := f.checks.Cleaned(t.Context(), leftovers[0]); err != nil {
		t.Fatal(err)
	}
	remove()
	if left() != 0 {
		t.Error("it was not deleted after 31 days")
	}
	if _, err := f.Get(t.Context(), duplicate.ID, report.User{}); err != nil {
		t.Errorf("its duplicate: %v", err)
	}
}

// withdrawn returns a report that ann has withdrawn, and the one that was a duplicate of it.
func withdrawn(t *testing.T) (f *fixture, filed, duplicate report.Filing) {
	t.Helper()
	f = newFixture(t)
	filed, duplicate = f.file(ann, draft(report.Public)), f.file(bob, draft(report.Public))
	if err := f.duplicates.Set(t.Context(), duplicate.ID, filed.ID, report.Official{ID: "olga", Name: "Olga"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Withdraw(t.Context(), filed.ID, ann.ID, report.Versions{}); err != nil {
		t.Fatal(err)
	}
	return f, filed, duplicate
}

// While a report is withdrawn, an official begins to work on it: one of both wins, and
// the other is refused.
func TestWithdrawMeetsMove(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 20 {
		filed := f.file(ann, draft(report.Anonymous))
		var withdrawn, moved error
		var both sync.WaitGroup
		both.Go(func() { _, withdrawn = f.Withdraw(t.Context(), filed.ID, ann.ID, report.Versions{}) })
		both.Go(func() {
			_, moved = f.Move(t.Context(), filed.ID, report.Move{To: report.InProgress, By: "olga"})
		})
		both.Wait()
		if (withdrawn == nil) == (moved == nil) {
			t.Fatalf("withdrawn: %v, moved: %v", withdrawn, moved)
		}
		kind := report.Hidden
		if withdrawn != nil {
			kind = report.NotPending
		}
		for _, err := range []error{withdrawn, moved} {
			if err != nil {
				wantKind(t, err, kind)
			}
		}
		state := f.number(`select count(*) from reports where id = $1 and (status = 'pending') = (withdrawn_at is not null)`, filed.ID)
		if state != 1 {
			t.Errorf("it is neither, or both")
		}
	}
}
