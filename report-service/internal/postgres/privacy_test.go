package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// rowsWith returns the tables that have a text, with one of the rows.
func (f *fixture) rowsWith(text string) map[string]string {
	f.t.Helper()
	names, err := f.pool.Query(f.t.Context(), `select tablename from pg_tables where schemaname = 'public'`)
	if err != nil {
		f.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	found := make(map[string]string)
	for _, table := range tables {
		// A bytea is written as hexadecimal digits.
		rows, err := f.pool.Query(f.t.Context(), `select t::text from `+table+` t
			where position($1 in t::text) > 0 or position(encode(convert_to($1, 'UTF8'), 'hex') in t::text) > 0 limit 1`, text)
		if err != nil {
			f.t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			f.t.Fatal(err)
		}
		if len(all) > 0 {
			found[table] = all[0]
		}
	}
	return found
}

// Once a reporter has hidden the name, it is in no table, stored answers and messages
// that wait or failed included, and the id only where the report belongs to somebody.
// Of what was published it goes with the job, which does its part after any crash.
func TestHideName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	quokka := report.Reporter{ID: "quokka-id", Name: "Quokka Kanari"}
	filed := filing(draft(report.Public), quokka, time.Now())
	idempotent := &report.Idempotent{UserID: quokka.ID, Key: "k", Response: report.StoredResponse(
		`{"id":"` + filed.ID.String() + `","reporter_name":"Quokka Kanari","privacy_level":"public"}`)}
	if _, err := f.Create(t.Context(), filed, idempotent); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Vote(t.Context(), filed.ID, "ben", report.Upvote); err != nil {
		t.Fatal(err)
	}
	f.mustMove(filed.ID, report.InProgress, "Seen")
	f.exec(`update outbox_messages set status = 'failed' where routing_key = 'report.vote.received'`)
	f.exec(`update outbox_messages set status = 'published', published_at = now() where routing_key = 'report.created'`)
	comment := uuid.New()
	f.exec(`insert into comments (id, report_id, text, anonymous, created_at) values ($1, $2, 'mine', false, now())`, comment, filed.ID)
	f.exec(`insert into commenters (comment_id, commenter_id, commenter_name) values ($1, $2, $3)`, comment, quokka.ID, quokka.Name)

	for _, other := range []string{"", "ben", "olga"} {
		_, err := f.HideName(t.Context(), filed.ID, other)
		wantKind(t, err, "not found")
	}
	view, err := f.HideName(t.Context(), filed.ID, quokka.ID)
	if err != nil {
		t.Fatal(err)
	}
	if view.Privacy != report.Anonymous || view.ReporterName != "" || !view.Mine || view.Version != 4 {
		t.Errorf("the reporter sees %+v", view)
	}
	if again, err := f.HideName(t.Context(), filed.ID, quokka.ID); err != nil || again.Version != 4 {
		t.Errorf("a second time: version %d, error %v", again.Version, err)
	}
	found := f.rowsWith(quokka.Name)
	if len(found) != 1 || !strings.Contains(found["outbox_messages"], "published") {
		t.Errorf("the name is in %v, want the published message alone", found)
	}
	rows := f.rowsOf(event.ModeratedKey)
	if len(rows) != 1 || !strings.Contains(string(rows[0].Payload), `"name_hidden"`) {
		t.Fatalf("announced as %v", rows)
	}
	for _, reader := range []report.User{{}, {ID: "ben"}, {ID: "olga", Official: true}, {ID: quokka.ID}} {
		if v, err := f.Get(t.Context(), filed.ID, reader); err != nil || v.ReporterName != "" || v.Privacy != report.Anonymous {
			t.Errorf("%+v sees %+v, error %v", reader, v, err)
		}
	}
	// The process dies in the job, before its commit; the next one does it all.
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	job := f.NamesJob()
	if p, err := job.Step(t.Context(), tx, schedule.Run{Job: job.Name}); err != nil || p.Done != 1 {
		t.Fatalf("the job has done %+v, error %v", p, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := f.rowsWith(quokka.Name); len(found) != 1 {
		t.Errorf("after a process that died the name is in %v", found)
	}
	next := openFixture(t, f.database)
	if err := scheduletest.Run(t.Context(), next.pool, next.NamesJob()); err != nil {
		t.Fatal(err)
	}
	if found := f.rowsWith(quokka.Name); len(found) > 0 {
		t.Errorf("after the job the name is in %v", found)
	}
	for table, row := range f.rowsWith(quokka.ID) {
		if table != "reporters" && table != "commenters" {
			t.Errorf("the id is in %s: %s", table, row)
		}
	}
	for _, row := range f.outbox() {
		m, err := event.Decode(event.Key(row.Key), row.Payload)
		if err != nil || m.About().ReporterID != "" {
			t.Errorf("%s: %v in %s", row.Key, err, row.Payload)
		}
	}
}
