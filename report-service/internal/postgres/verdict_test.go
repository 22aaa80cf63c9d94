package postgres_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// asking returns a fixture of a city that asks its reporters, with a resolved report of ann.
func asking(t *testing.T, privacy report.Privacy) (*fixture, uuid.UUID) {
	t.Helper()
	f := idleFixture(t)
	f.db.SetResolutions(report.Resolutions{VerdictDays: 10})
	f.start()
	id := f.file(ann, f.withTarget(privacy)).ID
	f.resolve(id)
	return f, id
}

func (f *fixture) resolve(id uuid.UUID) {
	f.t.Helper()
	_, err := f.Move(f.t.Context(), id, report.Move{To: report.Resolved, By: olga.ID, ByName: olga.Name})
	if err != nil {
		f.t.Fatal(err)
	}
}

// verdict gives a verdict and wants an error of the kind, or none.
func (f *fixture) verdict(id uuid.UUID, by string, fixed bool, text string, want fault.Kind) {
	f.t.Helper()
	_, err := f.GiveVerdict(f.t.Context(), id, by, report.NewFixVerdict(fixed, text, time.Now()))
	wantKind(f.t, err, want)
}

// asked returns what the reporter of a report is asked.
func (f *fixture) asked(id uuid.UUID, reader string) *report.AskedVerdict {
	f.t.Helper()
	view, err := f.Get(f.t.Context(), id, report.User{ID: reader})
	if err != nil {
		f.t.Fatal(err)
	}
	return view.Verdict
}

// kinds returns the kinds of the entries of a report's history, in words.
func (f *fixture) kinds(id uuid.UUID) string {
	f.t.Helper()
	history, err := f.History(f.t.Context(), id, report.User{})
	if err != nil {
		f.t.Fatal(err)
	}
	var words []string
	for _, c := range history {
		if c.Kind != "" {
			words = append(words, string(c.Kind))
		} else {
			words = append(words, string(c.To))
		}
	}
	return strings.Join(words, " ")
}

// A reporter disputes a resolution: the words are for officials alone, the report is on top
// of the queue, its clock begins, and who resolved it has it, until an official acts.
func TestDispute(t *testing.T) {
	t.Parallel()
	const words = "Gelap lagi sejak Selasa"
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		t.Run(string(privacy), func(t *testing.T) {
			t.Parallel()
			f, id := asking(t, privacy)
			f.file(bob, draft(report.Public))
			for _, other := range []string{"", bob.ID, olga.ID} {
				f.verdict(id, other, false, words, fault.NotFound)
			}
			asked := f.asked(id, ann.ID)
			if asked == nil || asked.Fixed != nil || asked.Until.Before(time.Now().AddDate(0, 0, 9)) || f.asked(id, bob.ID) != nil {
				t.Fatalf("the reporter is asked %+v, and another %+v", asked, f.asked(id, bob.ID))
			}
			f.verdict(id, ann.ID, false, words, "")
			f.verdict(id, ann.ID, false, words, "") // changes nothing
			if asked := f.asked(id, ann.ID); asked.Fixed == nil || *asked.Fixed || asked.Text != words {
				t.Errorf("the reporter reads %+v", asked)
			}
			if got := f.kinds(id); got != "pending resolved disputed" {
				t.Errorf("the history is %q", got)
			}
			rows := f.rowsOf(event.DisputedKey)
			if len(rows) != 1 || strings.Contains(string(rows[0].Payload), "ann") || rows[0].Version != 3 {
				t.Fatalf("announced as %+v", rows)
			}
			for _, r := range f.outbox() {
				if strings.Contains(string(r.Payload), words) {
					t.Errorf("%s has the words: %s", r.Key, r.Payload)
				}
			}
			work, err := f.workbench.Details(t.Context(), id, report.User{Official: true})
			if err != nil {
				t.Fatal(err)
			}
			if work.Verdict == nil || work.Verdict.Text != words || !work.Disputed || work.DueAt == nil || work.Assignee == nil || work.Assignee.ID != olga.ID {
				t.Errorf("officials see %+v", work)
			}
			queue, err := f.workbench.Queue(t.Context(), report.Filter{Order: report.Newest}, nil, 10)
			if err != nil || len(queue.Tasks) != 2 || queue.Tasks[0].ID != id {
				t.Errorf("the queue is %+v, error %v", queue.Tasks, err)
			}
			waiting, err := f.workbench.Waiting(t.Context(), report.User{Official: true})
			counts, countErr := f.workbench.Counts(t.Context(), report.Filter{})
			if err != nil || countErr != nil || waiting.Disputed != 1 || counts.Disputed != 1 || counts.Total != 2 {
				t.Errorf("%+v and %+v are counted, errors %v and %v", waiting, counts, err, countErr)
			}
			f.late(id, 1)
			if levels := f.overdue(id); !slices.Equal(levels, []int32{1}) {
				t.Errorf("overdue at the levels %v", levels)
			}

			// Reopened, it keeps its clock, and nobody is asked until it is resolved again.
			due := f.number(`select extract(epoch from due_at)::bigint from reports where id = $1`, id)
			f.mustMove(id, report.InProgress, "Dark again")
			if after := f.number(`select extract(epoch from due_at)::bigint from reports where id = $1 and disputed_at is null`, id); after != due {
				t.Error("its clock began once more")
			}
			f.verdict(id, ann.ID, true, "", report.NoVerdict)
			if f.asked(id, ann.ID) != nil {
				t.Error("the reporter of an open report is asked")
			}
			f.resolve(id)
			f.verdict(id, ann.ID, false, "Still", "")
		})
	}
}

// verdicts returns all that a reader reads of verdicts, and whose they are.
func (f *fixture) verdicts(id uuid.UUID, reader report.User) string {
	f.t.Helper()
	d, err := f.dialogue(id, reader)
	if err != nil {
		f.t.Fatal(err)
	}
	ids := map[uuid.UUID]bool{}
	var words []string
	for _, v := range d.Verdicts {
		words = append(words, fmt.Sprintf("%t:%s", v.Fixed, v.Text))
		if v.ReportID != id {
			words[len(words)-1] += "@duplicate"
		}
		ids[v.ID] = true
	}
	if len(ids) != len(words) {
		f.t.Errorf("%d verdicts have %d ids", len(words), len(ids))
	}
	return strings.Join(words, " ")
}

// Nothing that a reporter said is lost: neither by changed words, nor by another verdict,
// nor by another resolution. They and officials read it, and an erasure removes it.
func TestEachVerdictStays(t *testing.T) {
	t.Parallel()
	f, id := asking(t, report.Anonymous)
	f.verdict(id, ann.ID, false, "", "")
	f.verdict(id, ann.ID, false, "Dark", "") // follows the tap
	f.verdict(id, ann.ID, false, "Dark", "")
	f.verdict(id, ann.ID, false, "Dark again", "")
	f.mustMove(id, report.InProgress, "Again")
	f.resolve(id)
	f.verdict(id, ann.ID, false, "Still", "")
	f.verdict(id, ann.ID, true, "Thanks", "")
	const want = "false:Dark false:Dark again false:Still true:Thanks"
	for _, reader := range []report.User{{ID: ann.ID}, {ID: olga.ID, Official: true}} {
		if got := f.verdicts(id, reader); got != want {
			t.Errorf("%s reads %q, want %q", reader.ID, got, want)
		}
	}
	for _, other := range []string{"", bob.ID} {
		_, err := f.dialogue(id, report.User{ID: other})
		wantKind(t, err, fault.NotFound)
	}
	f.erase(f.newEraser(), ann.ID)
	if n := f.number(`select count(*) from verdicts where text <> '' or earlier <> '[]'`); n != 0 {
		t.Errorf("%d verdicts have words after the erasure", n)
	}
}

// The words of a verdict can be changed so often, and no oftener: each of them is kept. The
// other answer is always possible.
func TestWordsOfAVerdictAreBounded(t *testing.T) {
	t.Parallel()
	f, id := asking(t, report.Public)
	f.verdict(id, ann.ID, false, "0", "")
	for n := range 20 {
		f.verdict(id, ann.ID, false, strconv.Itoa(n+1), "")
	}
	f.verdict(id, ann.ID, false, "21", fault.Invalid)
	f.verdict(id, ann.ID, true, "22", "")
}

// An official keeps a disputed report resolved, once, with a note that everybody reads.
// After that the resolution is not disputed again.
func TestKeepResolved(t *testing.T) {
	t.Parallel()
	f, id := asking(t, report.Public)
	keep := report.Uphold{Note: "Lit at our visit", By: olga}
	wantKind(t, f.Uphold(t.Context(), id, keep), report.NotDisputed)
	f.verdict(id, ann.ID, false, "", "")
	stale := keep
	stale.IfMatch = report.VersionOnly(2)
	wantKind(t, f.Uphold(t.Context(), id, stale), report.Stale)
	blank := keep
	blank.Note = " "
	wantKind(t, f.Uphold(t.Context(), id, blank), fault.Invalid)
	if err := f.Uphold(t.Context(), id, keep); err != nil {
		t.Fatal(err)
	}
	wantKind(t, f.Uphold(t.Context(), id, keep), report.NotDisputed)
	if got := f.kinds(id); got != "pending resolved disputed kept" {
		t.Errorf("the history is %q", got)
	}
	rows := f.rowsOf(event.StatusUpdatedKey)
	m, err := event.Decode(event.StatusUpdatedKey, rows[len(rows)-1].Payload)
	if update, ok := m.(*event.StatusUpdate); err != nil || !ok || !update.Reply || update.Note != keep.Note || update.VerdictUntil != 0 {
		t.Errorf("announced as %s, error %v", rows[len(rows)-1].Payload, err)
	}
	f.verdict(id, ann.ID, false, "But", report.NoVerdict)
	if f.asked(id, ann.ID) != nil || f.number(`select count(*) from reports where disputed_at is not null or clock_since is not null`) != 0 {
		t.Error("the reporter is still asked, or the clock runs")
	}
	work, err := f.workbench.Details(t.Context(), id, report.User{Official: true})
	if err != nil || work.Disputed || !slices.ContainsFunc(work.Acts, func(a report.Act) bool { return a.Kind == report.KeptResolved && a.Text == keep.Note }) {
		t.Errorf("officials see %+v, error %v", work, err)
	}
}

// A reporter who confirms ends the own dispute, and cannot dispute the resolution again.
// Without a dispute a confirmation is announced to nobody.
func TestConfirm(t *testing.T) {
	t.Parallel()
	f, id := asking(t, report.Anonymous)
	before := len(f.outbox())
	f.verdict(id, ann.ID, true, "Thanks", "")
	if got := f.kinds(id); got != "pending resolved confirmed" || len(f.outbox()) != before {
		t.Errorf("the history is %q, and %d messages follow", got, len(f.outbox())-before)
	}
	f.verdict(id, ann.ID, false, "", "")
	f.verdict(id, ann.ID, true, "", "")
	rows := f.rowsOf(event.DisputedKey)
	if len(rows) != 2 || !strings.Contains(string(rows[1].Payload), `"retracted": true`) {
		t.Errorf("announced as %+v", rows)
	}
	if got := f.kinds(id); got != "pending resolved confirmed disputed confirmed" {
		t.Errorf("the history is %q", got)
	}
	f.verdict(id, ann.ID, false, "", report.DisputedBefore)
	if f.number(`select count(*) from reports where disputed_at is not null`) != 0 {
		t.Error("it is disputed")
	}
}

// Silence changes nothing, and is counted once the time is over; from then on nobody is
// asked. A city that asks nobody writes nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	f, silent := asking(t, report.Public)
	disputed, confirmed := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	f.resolve(disputed)
	f.resolve(confirmed)
	f.verdict(disputed, ann.ID, false, "", "")
	f.verdict(confirmed, bob.ID, true, "", "")
	f.exec(`update verdicts set until = now() - interval '1 second' where report_id = $1`, silent)
	f.verdict(silent, ann.ID, true, "", report.NoVerdict)
	if f.asked(silent, ann.ID) != nil {
		t.Error("the reporter is asked after the time")
	}
	filter := report.Filter{FiledFrom: time.Now().AddDate(0, 0, -40), FiledTo: time.Now().Add(time.Hour)}
	months, err := f.workbench.CountOverTime(t.Context(), filter, report.Month)
	if err != nil {
		t.Fatal(err)
	}
	_, departments, err := f.workbench.CountByPart(t.Context(), filter, report.ByDepartment)
	if err != nil {
		t.Fatal(err)
	}
	var byMonth, byDepartment report.VerdictCounts
	for _, n := range months {
		byMonth.Confirmed, byMonth.Disputed, byMonth.Silent = byMonth.Confirmed+n.Confirmed, byMonth.Disputed+n.VerdictCounts.Disputed, byMonth.Silent+n.Silent
	}
	for _, n := range departments {
		byDepartment.Confirmed, byDepartment.Disputed, byDepartment.Silent = byDepartment.Confirmed+n.Confirmed, byDepartment.Disputed+n.VerdictCounts.Disputed, byDepartment.Silent+n.Silent
	}
	if want := (report.VerdictCounts{Confirmed: 1, Disputed: 1, Silent: 1}); byMonth != want || byDepartment != want {
		t.Errorf("counted %+v by month and %+v by department, want one of each", byMonth, byDepartment)
	}

	f.db.SetResolutions(report.Resolutions{})
	quiet := f.file(ann, draft(report.Public)).ID
	f.resolve(quiet)
	if f.asked(quiet, ann.ID) != nil || f.number(`select count(*) from verdicts where report_id = $1`, quiet) != 0 {
		t.Error("a city that asks nobody asked")
	}
	for _, r := range f.rowsOf(event.StatusUpdatedKey) {
		if r.Report == quiet && strings.Contains(string(r.Payload), "verdict_until") {
			t.Errorf("announced as %s", r.Payload)
		}
	}
}

// The reporter of a duplicate is asked when it ends with its original, and what they dispute
// is the original: once, however many of them say so, until the last has taken it back.
func TestDuplicatesDisputeTheOriginal(t *testing.T) {
	t.Parallel()
	f := idleFixture(t)
	f.db.SetResolutions(report.Resolutions{VerdictDays: 10})
	f.start()
	f.runDuplicates()
	original, second, third := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Anonymous)).ID, f.file(bob, draft(report.Public)).ID
	f.mustMark(second, original)
	f.mustMark(third, original)
	f.mustMove(original, report.Resolved, "")
	f.followed()
	for _, id := range []uuid.UUID{second, third} {
		if f.asked(id, bob.ID) == nil {
			t.Fatal("the reporter of a duplicate is not asked")
		}
	}
	f.verdict(second, bob.ID, false, "Dark", "")
	f.verdict(third, bob.ID, false, "Dark too", "")
	rows := f.rowsOf(event.DisputedKey)
	if len(rows) != 1 || rows[0].Report != original {
		t.Fatalf("announced as %+v", rows)
	}
	work, err := f.workbench.Details(t.Context(), original, report.User{Official: true})
	if err != nil || !work.Disputed || work.Verdict != nil || len(work.Disputes) != 2 || work.Disputes[0].ReportID != second || work.Disputes[0].Text != "Dark" {
		t.Errorf("officials see %+v of the original, error %v", work, err)
	}
	if got := f.kinds(second); got != "pending resolved disputed" {
		t.Errorf("the history of the duplicate is %q", got)
	}
	if officials, reporter := f.verdicts(original, report.User{Official: true}), f.verdicts(original, report.User{ID: ann.ID}); officials != "false:Dark@duplicate false:Dark too@duplicate" || reporter != "" {
		t.Errorf("officials read %q of the original, and its reporter %q", officials, reporter)
	}
	f.verdict(second, bob.ID, true, "", "")
	if f.number(`select count(*) from reports where disputed_at is not null`) != 1 {
		t.Error("the original is no longer disputed although one of its reporters says so")
	}
	f.verdict(third, bob.ID, true, "", "")
	if f.number(`select count(*) from reports where disputed_at is not null`) != 0 || len(f.rowsOf(event.DisputedKey)) != 2 {
		t.Error("the original is still disputed")
	}
	f.verdict(third, bob.ID, false, "Dark after all", report.DisputedBefore)
	if got := f.kinds(original); got != "pending resolved disputed confirmed" {
		t.Errorf("the history of the original is %q", got)
	}
}

// A reporter who changes their mind all day does not fill the history.
func TestFewChangesOfMind(t *testing.T) {
	t.Parallel()
	f := idleFixture(t)
	f.db.SetResolutions(report.Resolutions{VerdictDays: 10})
	f.start()
	f.runDuplicates()
	original, id := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	f.mustMark(id, original)
	f.mustMove(original, report.Resolved, "")
	f.followed()
	f.mustMove(original, report.InProgress, "Again")
	f.exec(`insert into verdicts (report_id, version, until) select id, 99, now() + interval '1 day' from reports where id = $1`, id)
	for _, fixed := range []bool{false, true, false, true} {
		f.verdict(id, bob.ID, fixed, "", "")
	}
	f.verdict(id, bob.ID, false, "", report.DisputedBefore)
	if got := f.kinds(id); got != "pending resolved disputed confirmed disputed confirmed" {
		t.Errorf("the history is %q", got)
	}
}

// While a reporter disputes, an official reopens: the report is never both.
func TestDisputeMeetsReopening(t *testing.T) {
	t.Parallel()
	f, id := asking(t, report.Anonymous)
	for range 10 {
		var said, moved error
		var both sync.WaitGroup
		both.Go(func() {
			_, said = f.GiveVerdict(t.Context(), id, ann.ID, report.NewFixVerdict(false, "", time.Now()))
		})
		both.Go(func() {
			_, moved = f.Move(t.Context(), id, report.Move{To: report.InProgress, Note: "Again", By: olga.ID})
		})
		both.Wait()
		if moved != nil {
			t.Fatal(moved)
		}
		if said != nil {
			wantKind(t, said, report.NoVerdict)
		}
		if n := f.number(`select count(*) from reports where disputed_at is not null`); n != 0 {
			t.Fatal("an open report is disputed")
		}
		f.resolve(id)
	}
}

// Disputed reports come before all others on whatever page, and each report once.
func TestQueuePins(t *testing.T) {
	t.Parallel()
	f, first := asking(t, report.Public)
	want := []uuid.UUID{first}
	for range 6 {
		want = append(want, f.file(ann, draft(report.Public)).ID)
	}
	last := want[6]
	f.resolve(last)
	for _, id := range []uuid.UUID{first, last} {
		f.verdict(id, ann.ID, false, "", "")
	}
	want = slices.Insert(want[:6], 1, last)
	for _, limit := range []int{1, 2, 3, 7, 10} {
		for _, order := range []report.Order{report.Oldest, report.Newest, report.Due, report.Changed} {
			var got []uuid.UUID
			var after *report.Cursor
			for {
				queue, err := f.workbench.Queue(t.Context(), report.Filter{Order: order}, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, task := range queue.Tasks {
					got = append(got, task.ID)
				}
				if after = queue.Next; after == nil {
					break
				}
				if len(queue.Tasks) != limit {
					t.Errorf("limit %d, %s: %d reports on a page that has another behind it", limit, order, len(queue.Tasks))
				}
				if err := after.Of(report.Filter{Order: order}); err != nil {
					t.Errorf("limit %d, %s: the cursor is refused: %v", limit, order, err)
				}
			}
			pinned := got[:2]
			if len(got) != 7 || !slices.Contains(pinned, first) || !slices.Contains(pinned, last) || order == report.Oldest && !slices.Equal(got, want) {
				t.Errorf("limit %d, %s: %v, want %v", limit, order, got, want)
			}
		}
	}
	plain, err := f.workbench.Queue(t.Context(), report.Filter{Order: report.Oldest, Unpinned: true}, nil, 10)
	if err != nil || len(plain.Tasks) != 7 || plain.Tasks[6].ID != last {
		t.Errorf("without pins: %+v, error %v", plain.Tasks, err)
	}
}

// Where the city asks for it, a report is resolved only with a photo of the finished work
// from after it was last reopened. Duplicates end with their original without one.
func TestResolveNeedsPhoto(t *testing.T) {
	t.Parallel()
	f := idleFixture(t)
	f.db.SetResolutions(report.Resolutions{NeedPhoto: true})
	f.start()
	f.runDuplicates()
	id, duplicate := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	f.mustMark(duplicate, id)
	resolve := func(want fault.Kind) {
		t.Helper()
		_, err := f.Move(t.Context(), id, report.Move{To: report.Resolved, By: olga.ID})
		wantKind(t, err, want)
	}
	resolve(report.PhotoNeeded)
	add := func(by report.User, after bool, want fault.Kind) {
		t.Helper()
		_, _, err := f.photos.Add(t.Context(), report.Upload{ID: uuid.New(), ReportID: id, Key: uuid.NewString(), After: after}, by)
		wantKind(t, err, want)
	}
	official := report.User{ID: olga.ID, Name: olga.Name, Official: true}
	add(report.User{ID: ann.ID}, true, report.NotReporter)
	for range report.MaxPhotos {
		add(report.User{ID: ann.ID}, false, "")
	}
	add(official, false, report.TooManyPhotos)
	resolve(report.PhotoNeeded)
	add(official, true, "")
	resolve("")
	f.followed()
	if f.status(duplicate) != report.Resolved {
		t.Error("the duplicate did not end with its original")
	}
	photos, err := f.photos.List(t.Context(), id, official)
	if err != nil || len(photos) != report.MaxPhotos+1 || photos[0].After || !photos[report.MaxPhotos].After {
		t.Errorf("the photos are %+v, error %v", photos, err)
	}
	f.mustMove(id, report.InProgress, "Dark again")
	resolve(report.PhotoNeeded)
	add(official, true, "")
	resolve("")
}

// An erasure takes the words of a verdict, and leaves one that was not given as that of
// somebody who is silent; withdrawal and retention take all of it.
func TestVerdictsEnd(t *testing.T) {
	t.Parallel()
	f, erased := asking(t, report.Public)
	unanswered := f.file(ann, draft(report.Public)).ID
	f.resolve(unanswered)
	f.verdict(erased, ann.ID, false, "Dark", "")
	f.erase(f.newEraser(), ann.ID)
	if n := f.number(`select count(*) from verdicts where text = '' and earlier = '[]'`); n != 2 || f.number(`select count(*) from verdicts where given_at is null and ended_at is null`) != 1 {
		t.Errorf("%d of 2 verdicts have no words", n)
	}
	f.exec(`delete from verdicts where given_at is null`)

	withdrawn := f.file(bob, draft(report.Public)).ID
	f.resolve(withdrawn)
	f.verdict(withdrawn, bob.ID, false, "Dark", "")
	f.mustMove(withdrawn, report.InProgress, "Again")
	f.mustMove(withdrawn, report.Pending, "")
	if _, err := f.Withdraw(t.Context(), withdrawn, bob.ID, report.Versions{}); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`select count(*) from verdicts where report_id = $1`, withdrawn); n != 0 {
		t.Error("a withdrawn report has a verdict")
	}

	old, young := f.file(bob, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	for _, id := range []uuid.UUID{old, young} {
		f.resolve(id)
		f.verdict(id, bob.ID, true, "Thanks", "")
		f.verdict(id, bob.ID, false, "Dark", "")
		if err := f.Uphold(t.Context(), id, report.Uphold{Note: "Lit", By: olga}); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(`update reports set updated_at = updated_at - interval '3 years' where id = $1`, old)
	f.exec(`update status_history set changed_at = changed_at - interval '3 years' where report_id = $1`, old)
	f.exec(`update verdicts set given_at = given_at - interval '3 years' where report_id = $1`, old)
	keep := upkeep.Retention{History: retention.Period(730 * 24 * time.Hour)}
	if err := scheduletest.Run(t.Context(), f.pool, retention.Job(keep.Tasks(), prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	if f.number(`select count(*) from verdicts where report_id = $1`, old) != 0 || f.number(`select count(*) from verdicts where report_id = $1`, young) != 1 {
		t.Error("retention removed the wrong verdicts")
	}
	if a, b := f.kinds(old), f.kinds(young); a != "pending kept" || b != "pending resolved confirmed disputed kept" {
		t.Errorf("the histories are %q and %q", a, b)
	}
}
