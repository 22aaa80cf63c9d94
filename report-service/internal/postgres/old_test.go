package postgres_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// word is in everything that people write in TestOldReports.
const word = "Xylophon"

// A report that was closed long ago keeps what numbers are made of. What people wrote, and
// what leads to them, is in the city's archive, or nowhere.
func TestOldReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	files, err := blob.Open(blob.Config{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	d := draft(report.Public)
	d.Title, d.Description, d.Address, d.Position = word+" 1", word+" 2", word+" 3", &report.Position{Latitude: -6.91234, Longitude: 107.61234}
	f.exec(`insert into asset_layers (layer, category_id) values ('lamps', 2)`)
	f.exec(`insert into assets (layer, code, name, latitude, longitude) values ('lamps', 'L-1', '', -6.9, 107.6)`)
	d.Asset.ID = int32(f.number(`select id from assets`)) //nolint:gosec // the first of one
	old, young := f.file(kanari, d), f.file(kanari, draft(report.Public))
	f.write(old)
	for _, r := range []report.Filing{old, young} {
		for _, s := range []report.Status{report.InProgress, report.Resolved} {
			if _, err := f.Move(t.Context(), r.ID, report.Move{To: s, By: olga.ID, Note: word + " 4"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.exec(`update status_history set note = '' where report_id = $1`, young.ID)
	f.exec(`delete from outbox_messages`)
	f.exec(`update reports set created_at = created_at - interval '4 years', updated_at = updated_at - interval '4 years' where id = $1`, old.ID)
	f.exec(`update status_history set changed_at = changed_at - interval '4 years' where report_id = $1`, old.ID)
	before, numbers := f.View(t, old), f.numbers()

	job := f.upkeep.OldReportsJob(retention.Period(3*365*day), files)
	if err := scheduletest.Run(t.Context(), f.pool, job); err != nil {
		t.Fatal(err)
	}
	if found := f.tablesWith(word); len(found) > 0 {
		t.Errorf("words are left in %v", found)
	}
	if found := f.tablesWith("-6.91234"); len(found) > 0 {
		t.Errorf("the place is left in %v", found)
	}
	after := f.View(t, old)
	if after.Title != report.Reference(old.ID) || *after.Position != (report.Position{Latitude: -6.912, Longitude: 107.612}) || after.ReporterName != "" || after.Asset.ID != 0 {
		t.Errorf("the report is %+v, want its reference, and its place to a hundred metres", after)
	}
	if !after.CreatedAt.Equal(before.CreatedAt) || !after.UpdatedAt.Equal(before.UpdatedAt) || after.Version <= before.Version ||
		after.Status != report.Resolved || after.Category.ID != before.Category.ID || after.Score != before.Score {
		t.Errorf("the report is %+v, want what numbers are made of as before, %+v", after, before)
	}
	if got := f.numbers(); !reflect.DeepEqual(got, numbers) {
		t.Errorf("the numbers are %v, want %v", got, numbers)
	}
	if v := f.View(t, young); v.Title != "Dark lamp" || v.ReporterName != kanari.Name {
		t.Errorf("the report that was closed lately is %+v, want all of it", v)
	}
	messages := f.outbox()
	if len(messages) != 1 || messages[0].Report != old.ID || !strings.Contains(string(messages[0].Payload), `"words_removed"`) || messages[0].Headers["x-recipient"] == "" {
		t.Errorf("announced are %v, want the removal, for nobody", messages)
	}
	checkArchive(t, files, report.YearMonthOf(after.UpdatedAt), 1)
	if err := scheduletest.Run(t.Context(), f.pool, job); err != nil || len(f.outbox()) != 1 {
		t.Errorf("a second run: %d announcements, error %v; want none more", len(f.outbox()), err)
	}
}

// write has people write words about a report wherever they can.
func (f *fixture) write(r report.Filing) {
	f.t.Helper()
	if _, err := f.Vote(f.t.Context(), r.ID, bob.ID, report.Upvote); err != nil {
		f.t.Fatal(err)
	}
	for _, err := range []error{
		f.moderation.Complain(f.t.Context(), r.ID, report.Complaint{Reason: report.Spam, Text: word}, bob.ID),
		f.workbench.AddNote(f.t.Context(), r.ID, word, olga),
		f.workbench.Assign(f.t.Context(), r.ID, report.Assignment{Assignee: &olga}, olga),
	} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.exec(`insert into counter_reports (report_id, source, entered_by) values ($1, 'telephone', 'olga-id')`, r.ID)
	f.exec(`insert into duplicate_ends (original, status, note, closed_by) values ($1, 'resolved', '`+word+`', 'olga-id')`, r.ID)
	f.exec(`with c as (insert into comments (id, report_id, text, anonymous, created_at) values (gen_random_uuid(), $1, '`+word+`', false, now()) returning id)
		insert into commenters (comment_id, commenter_id, commenter_name) select id, 'bob-id', 'Bob' from c`, r.ID)
	f.exec(`with q as (insert into questions (id, report_id, text, asked_by, asked_at, ends_on, ends_at, state, ended_at)
			values (gen_random_uuid(), $1, '`+word+`', 'olga-id', now(), now(), now(), 'answered', now()) returning id)
		insert into answers (question_id, id, text, answered_at) select id, gen_random_uuid(), '`+word+`', now() from q`, r.ID)
	f.exec(`insert into verdicts (report_id, version, until, fixed, text, given_at) values ($1, 3, now(), true, '`+word+`', now() - interval '4 years')`, r.ID)
	f.exec(`insert into photos (id, report_id, state, alt, official, bytes, digest) values (gen_random_uuid(), $1, 'ready', '`+word+`', false, 1, '')`, r.ID)
	f.exec(`insert into status_history (report_id, from_status, to_status, note, changed_by, report_version, changed_at, correction)
		values ($1, 'pending', 'pending', '`+word+`', 'olga-id', 2, now(), '{"position": {"from": {"latitude": -6.91234, "longitude": 107.6}, "to": null}}')`, r.ID)
}

// View returns a report as nobody sees it.
func (f *fixture) View(t *testing.T, r report.Filing) report.View {
	t.Helper()
	v, err := f.Get(t.Context(), r.ID, report.User{Official: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// numbers returns those of five years, by month, category and area.
func (f *fixture) numbers() (all []any) {
	f.t.Helper()
	filter := report.Filter{Official: true, FiledFrom: time.Now().AddDate(-5, 0, 0), FiledTo: time.Now().Add(time.Hour)}
	months, err := f.workbench.CountOverTime(f.t.Context(), filter, report.Month)
	if err != nil {
		f.t.Fatal(err)
	}
	_, parts, err := f.workbench.CountByPart(f.t.Context(), filter, report.ByArea)
	if err != nil {
		f.t.Fatal(err)
	}
	return append(all, months, parts)
}

// tablesWith returns the tables that have a text anywhere.
func (f *fixture) tablesWith(text string) (found []string) {
	f.t.Helper()
	rows, err := f.pool.Query(f.t.Context(), `select table_name from information_schema.tables where table_schema = 'public' order by 1`)
	if err != nil {
		f.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	for _, table := range tables {
		if f.number(`select count(*) from `+table+` r where position(lower($1) in lower(r::text)) > 0`, text) > 0 {
			found = append(found, table)
		}
	}
	return found
}

// checkArchive fails the test unless the file of a month has so many reports, and nobody's
// name.
func checkArchive(t *testing.T, files blob.Store, m report.YearMonth, want int) {
	t.Helper()
	file, err := files.Get(t.Context(), fmt.Sprintf("archive/reports-%s.jsonl", m), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	if len(lines) != want {
		t.Errorf("the archive has %d reports, want %d", len(lines), want)
	}
	if n := strings.Count(string(file), word); n != 11 || !json.Valid([]byte(lines[0])) {
		t.Errorf("the archive has %d of the words, want 11: %s", n, file)
	}
	if !strings.Contains(string(file), `"asset": "lamps/L-1"`) {
		t.Errorf("the archive lacks the thing: %s", file)
	}
	for _, name := range []string{kanari.ID, kanari.Name, "bob-id", "Bob", "olga"} {
		if strings.Contains(string(file), name) {
			t.Errorf("the archive names %s: %s", name, file)
		}
	}
	for part, err := range files.List(t.Context(), "archive/parts/") {
		t.Errorf("the archive has the part %v, error %v; want none", part, err)
	}
}
