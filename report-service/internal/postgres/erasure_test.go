package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A person whose id and name are found wherever they are.
var kanari = report.Reporter{ID: "kanari|7f3a9c", Name: "Kanari Burung"}

func (f *fixture) newEraser() *erasure.Eraser {
	return erasure.New(f.pool, f.keys, f.upkeep.ErasureSteps(), zerolog.Nop())
}

// erase works until the erasure of userID is done, without its pauses.
func (f *fixture) erase(e *erasure.Eraser, userID string) erasure.Erasure {
	f.t.Helper()
	state, err := e.Request(f.t.Context(), "pavel-id", userID)
	if err != nil {
		f.t.Fatal(err)
	}
	for state.DoneAt == nil {
		f.exec(`update erasures set due_at = now()`)
		if _, err := e.Step(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if state, err = e.Get(f.t.Context(), state.ID); err != nil {
			f.t.Fatal(err)
		}
	}
	return state
}

// live has kanari and others do everything that leaves a trace.
func (f *fixture) live() (public, anonymous, others report.Filing) {
	f.t.Helper()
	public, anonymous, others = f.file(kanari, draft(report.Public)), f.file(kanari, draft(report.Anonymous)), f.file(ann, draft(report.Public))
	keyed := filing(draft(report.Public), kanari, time.Now())
	_, err := f.Create(f.t.Context(), keyed, &report.Idempotent{UserID: kanari.ID, Key: "1",
		Response: report.StoredResponse(fmt.Sprintf(`{"id":%q,"reporter_name":%q}`, keyed.ID, kanari.Name))})
	if err != nil {
		f.t.Fatal(err)
	}
	vote := func(id uuid.UUID, voter string, v report.Vote) {
		if _, err := f.Vote(f.t.Context(), id, voter, v); err != nil {
			f.t.Fatal(err)
		}
	}
	vote(public.ID, bob.ID, report.Upvote)
	vote(anonymous.ID, bob.ID, report.Downvote)
	vote(others.ID, bob.ID, report.Upvote)
	vote(others.ID, kanari.ID, report.Upvote)
	for _, s := range []report.Status{report.InProgress, report.Resolved} { // as an official
		if _, err := f.Move(f.t.Context(), others.ID, report.Move{To: s, By: kanari.ID}); err != nil {
			f.t.Fatal(err)
		}
	}
	official := report.Official{ID: kanari.ID, Name: kanari.Name}
	for _, err := range []error{
		f.workbench.Assign(f.t.Context(), others.ID, report.Assignment{Assignee: &official}, official),
		f.workbench.AddNote(f.t.Context(), others.ID, "seen", official),
		f.desk.SetViews(f.t.Context(), kanari.ID, []report.QueueView{{Name: kanari.Name, Filters: "assignee=" + kanari.ID}}),
		f.duplicates.Set(f.t.Context(), public.ID, others.ID, official), // closed, so that its end waits
	} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if _, _, err := f.workbench.BeginBulkMove(f.t.Context(), report.BulkMove{By: official, To: report.Rejected, Reports: []uuid.UUID{others.ID}}, nil); err != nil {
		f.t.Fatal(err)
	}
	f.exec(`insert into outbox_audit (actor, action, message_id, routing_key, reason) values
		($1, 'retry', gen_random_uuid(), 'x', ''), ('pavel-id', 'discard', gen_random_uuid(), 'x', 'asked by ' || $1 || '.')`, kanari.ID)
	f.exec(`insert into schedule_audit (actor, action, schedule, reason) values
		($1, 'schedule_pause', 'overdue', ''), ('pavel-id', 'schedule_run', 'overdue', 'asked by ' || $1 || '.')`, kanari.ID)
	f.exec(`update outbox_messages set status = 'published', published_at = now() where seq % 2 = 0`)
	return public, anonymous, others
}

// traces returns the tables that have text of kanari, beside the erasure's own.
func (f *fixture) traces() (found []string) {
	f.t.Helper()
	rows, err := f.pool.Query(f.t.Context(), `select table_name from information_schema.tables where table_schema = 'public'`)
	if err != nil {
		f.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	for _, table := range tables {
		var text string
		if err := f.pool.QueryRow(f.t.Context(), `select coalesce(string_agg(r::text, ' '), '') from `+table+` r`).Scan(&text); err != nil {
			f.t.Fatal(err)
		}
		for _, canary := range []string{kanari.ID, kanari.Name, fmt.Sprintf("%x", kanari.ID), fmt.Sprintf("%x", kanari.Name)} {
			if strings.Contains(text, canary) {
				found = append(found, table)
			}
		}
	}
	return found
}

// Nothing that identifies an erased person is left. Their reports, the votes on
// them and their own votes are kept without an author.
func TestErasure(t *testing.T) { //nolint:funlen // every place where a person was, one after the other
	t.Parallel()
	f := newFixture(t)
	public, anonymous, others := f.live()
	before := f.count()
	e := f.newEraser()
	state := f.erase(e, kanari.ID)

	if found := f.traces(); len(found) > 0 {
		t.Errorf("traces are left in %v", found)
	}
	want := map[string]int64{"reports": 3, "votes": 1, "history": 2, "work": 3, "officials": 1, "audit": 2}
	for step, n := range want {
		if state.Removed[step] != n {
			t.Errorf("step %s removed %d, want %d", step, state.Removed[step], n)
		}
	}
	if len(state.Left) != 0 {
		t.Errorf("%v are left", state.Left)
	}
	after := f.count()
	for _, table := range []string{"reports", "status_history", "votes", "outbox_messages"} {
		want := before[table]
		if table == "outbox_messages" {
			want += 2 // two names are hidden
		}
		if after[table] != want {
			t.Errorf("%s has %d rows, want %d", table, after[table], want)
		}
	}
	for _, filed := range []report.Filing{public, anonymous} {
		for _, reader := range []string{"", kanari.ID, bob.ID} {
			v, err := f.Get(t.Context(), filed.ID, report.User{ID: reader})
			if err != nil || v.ReporterName != "" || v.Mine || v.Privacy != report.Anonymous {
				t.Errorf("as %q: %+v (error %v), want an anonymous report of somebody else", reader, v, err)
			}
		}
		// A reader with a copy that has the name sees the same as if its reporter had hidden it.
		if n := f.number(`select count(*) from outbox_messages where report_id = $1 and payload ->> 'action' = 'name_hidden'`, filed.ID); (n == 1) != (filed.Privacy == report.Public) {
			t.Errorf("of the %s report %d messages say that its name is hidden", filed.Privacy, n)
		}
		if v, err := f.Get(t.Context(), filed.ID, report.User{ID: bob.ID}); err != nil || v.Score == 0 || v.MyVote == report.None {
			t.Errorf("the vote on it is gone: %+v (error %v)", v, err)
		}
	}
	if n := f.number(`select score - (select sum(value) from votes where report_id = id) from reports where id = $1`, others.ID); n != 0 {
		t.Errorf("the score differs from the votes by %d", n)
	}
	page, err := f.List(t.Context(), report.Filter{Reporter: kanari.ID}, nil, 10, kanari.ID)
	if err != nil || len(page.Reports) != 0 {
		t.Errorf("the person has %d reports (error %v), want none", len(page.Reports), err)
	}
	for _, m := range f.outbox() {
		if recipient, err := f.keys.Open(m.Report, m.Headers[event.RecipientHeader]); err != nil || recipient == kanari.ID {
			t.Errorf("a message is for %q (error %v)", recipient, err)
		}
		if _, err := event.Decode(event.Key(m.Key), m.Payload); err != nil {
			t.Errorf("a message that waits breaks the contract: %v", err)
		}
	}

	// Later events are for whom nobody is, and the report goes on.
	last := len(f.outbox())
	if _, err := f.Vote(t.Context(), public.ID, ann.ID, report.Upvote); err != nil {
		t.Fatal(err)
	}
	m := f.outbox()[last]
	if recipient, err := f.keys.Open(m.Report, m.Headers[event.RecipientHeader]); err != nil || !strings.HasPrefix(recipient, "erased:") {
		t.Errorf("a new message is for %q (error %v), want a random id", recipient, err)
	}
	if n := f.number(`select count(distinct reporter_id) from reporters where reporter_id like 'erased:%' and reporter_name = ''`); n != 3 {
		t.Errorf("3 reports have %d reporters: they are linked", n)
	}

	// A second time changes nothing; and it is known who was erased.
	again := f.erase(e, kanari.ID)
	for step, n := range again.Removed {
		if n != 0 {
			t.Errorf("the second time step %s removed %d", step, n)
		}
	}
	for _, id := range []string{kanari.ID, ann.ID} {
		other := f.newEraser()
		if err := other.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := other.Erased(id); got != (id == kanari.ID) {
			t.Errorf("%s is erased: %t", id, got)
		}
	}
}

// Others vote on the reports of a person while they are erased. In any order,
// no later message is for that person, and no vote is lost.
func TestErasureBesideVotes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var reports []report.Filing
	for range 20 {
		reports = append(reports, f.file(kanari, draft(report.Anonymous)))
	}
	ctx, stop := context.WithCancel(t.Context())
	votes := make([]int, 4)
	var voting sync.WaitGroup
	for v := range votes {
		voting.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := f.Vote(t.Context(), reports[i%len(reports)].ID, fmt.Sprint("voter", v), []report.Vote{report.Upvote, report.Downvote}[i/len(reports)%2]); err != nil {
					t.Errorf("vote: %v", err)
					return
				}
				votes[v]++
			}
		})
	}
	eventually.True(f.t, "votes were cast", func() bool { return f.number(`select count(*) from outbox_messages`) > 100 })
	e := f.newEraser()
	state, err := e.Request(t.Context(), "pavel-id", kanari.ID)
	if err != nil {
		t.Fatal(err)
	}
	for len(state.Left) > 3 { // up to the messages, whose step waits for what is under way
		f.exec(`update erasures set due_at = now()`)
		if _, err := e.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, err = e.Get(t.Context(), state.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.number(`select count(*) from erasures where due_at > now() + interval '10 seconds'`); n != 1 {
		t.Error("the step that changes messages does not wait for changes under way")
	}
	seen := f.number(`select count(*) from outbox_messages`)
	eventually.True(f.t, "more votes were cast", func() bool { return f.number(`select count(*) from outbox_messages`) > seen+100 })
	stop()
	voting.Wait()
	f.erase(e, kanari.ID)
	total := 0
	for _, n := range votes {
		total += n
	}
	if n := f.number(`select count(*) from outbox_messages where routing_key = 'report.vote.received'`); n != total {
		t.Errorf("%d messages of %d votes", n, total)
	}
	for _, m := range f.outbox() {
		if recipient, err := f.keys.Open(m.Report, m.Headers[event.RecipientHeader]); err != nil || recipient != "" && !strings.HasPrefix(recipient, "erased:") {
			t.Fatalf("a message is for %q (error %v), want nobody", recipient, err)
		}
	}
}

// A process that dies in the middle leaves an erasure that another one ends.
func TestErasureGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.live()
	died := errors.New("died")
	for name, steps := 0, f.upkeep.ErasureSteps(); name < len(steps); name++ {
		// Each step in turn dies after its work and before its commit.
		step := steps[name]
		do := step.Do
		steps[name].Do = func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (string, int64, error) {
			_, _, err := do(ctx, tx, userID, cursor, limit)
			return "", 0, errors.Join(died, err)
		}
		dying := erasure.New(f.pool, f.keys, steps, zerolog.Nop())
		if _, err := dying.Request(t.Context(), "pavel-id", kanari.ID); err != nil {
			t.Fatal(err)
		}
		for err := error(nil); err == nil; {
			f.exec(`update erasures set due_at = now()`)
			if _, err = dying.Step(t.Context()); err != nil && !errors.Is(err, died) {
				t.Fatal(err)
			}
		}
		steps[name].Do = do
	}
	f.erase(f.newEraser(), kanari.ID)
	if found := f.traces(); len(found) > 0 {
		t.Errorf("traces are left in %v", found)
	}
	if n := f.number(`select count(*) from erasures`); n != 1 {
		t.Errorf("%d erasures, want the one that was asked for", n)
	}
}

// While an erasure runs, its row names nobody: the id is sealed.
func TestErasureNamesNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.newEraser().Request(t.Context(), "pavel-id", kanari.ID); err != nil {
		t.Fatal(err)
	}
	if found := f.traces(); len(found) > 0 {
		t.Errorf("%v names the person", found)
	}
	list, err := f.newEraser().List(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(list)
	if err != nil || len(list) != 1 || strings.Contains(string(shown), kanari.ID) {
		t.Errorf("operators see %s (error %v)", shown, err)
	}
}

// A hundred reports are locked at a time, and a person may have more.
func TestErasureOfMany(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
		select gen_random_uuid(), 'x', '', 1, 'public', 'pending', 1, now(), now() from generate_series(1, 2500)`)
	f.exec(`insert into reporters select id, $1, $2 from reports`, kanari.ID, kanari.Name)
	f.exec(`insert into votes select id, $1, 1, now() from reports`, kanari.ID)
	state := f.erase(f.newEraser(), kanari.ID)
	if state.Removed["reports"] != 2500 || state.Removed["votes"] != 2500 {
		t.Errorf("removed %v, want 2500 of each", state.Removed)
	}
	if found := f.traces(); len(found) > 0 {
		t.Errorf("traces are left in %v", found)
	}
}
