package postgres_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// questionDays is how many working days a reporter has in these tests.
const questionDays = 10

// tryAsk asks the reporter of a report something as olga.
func (f *fixture) tryAsk(id uuid.UUID) (report.Question, error) {
	f.t.Helper()
	q, err := report.NewQuestion("Which of the two lamps?", olga, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	return f.questions.Ask(f.t.Context(), id, q)
}

func (f *fixture) ask(id uuid.UUID) report.Question {
	f.t.Helper()
	q, err := f.tryAsk(id)
	if err != nil {
		f.t.Fatalf("Ask: %v", err)
	}
	return q
}

// answer answers as somebody.
func (f *fixture) answer(id uuid.UUID, by string) error {
	f.t.Helper()
	a, err := report.NewAnswer("The one at the bridge.", time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = f.questions.Answer(f.t.Context(), id, by, a, nil)
	return err
}

// runQuestions runs the job once.
func (f *fixture) runQuestions() {
	f.t.Helper()
	if err := scheduletest.Run(f.t.Context(), f.pool, f.questions.Job()); err != nil {
		f.t.Fatal(err)
	}
}

// halfOver and over let the time for answers pass.
func (f *fixture) halfOver() { f.exec(`update questions set remind_at = now() where state = 'open'`) }
func (f *fixture) over() {
	f.exec(`update questions set remind_at = null, ends_at = now() where state = 'open'`)
}

// dialogue returns what a reader gets.
func (f *fixture) dialogue(id uuid.UUID, reader report.User) (report.Dialogue, error) {
	return f.questions.Dialogue(f.t.Context(), id, reader)
}

// wantMessages makes sure that a report's messages about questions have the keys, and
// returns them.
func (f *fixture) wantMessages(id uuid.UUID, want ...event.Key) (rows []row) {
	f.t.Helper()
	var got []event.Key
	for _, r := range f.outbox() {
		switch key := event.Key(r.Key); key {
		case event.AskedKey, event.RemindedKey, event.AnsweredKey, event.ExpiredKey:
			if r.Report == id {
				rows, got = append(rows, r), append(got, key)
			}
		}
	}
	if len(got) != len(want) {
		f.t.Fatalf("messages %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			f.t.Fatalf("messages %v, want %v", got, want)
		}
	}
	return rows
}

// A question reaches its reporter, is answered once, by the reporter alone, and only
// they and officials read either. Messages have no text, and name nobody beyond what a
// change of status does.
func TestQuestionAndAnswer(t *testing.T) {
	t.Parallel()
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		t.Run(string(privacy), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filed := f.file(ann, draft(privacy))
			wantKind(t, f.answer(filed.ID, ann.ID), report.NotAsked)
			q := f.ask(filed.ID)
			_, err := f.tryAsk(filed.ID)
			wantKind(t, err, report.AskedAlready)
			for reader, open := range map[report.User]bool{{}: false, {ID: bob.ID}: false, {ID: olga.ID, Official: true}: false, {ID: ann.ID}: true} {
				view, err := f.Get(t.Context(), filed.ID, reader)
				if err != nil || (view.Question != nil) != open || open && (view.Question.ID != q.ID || view.Question.EndsOn != q.EndsOn) {
					t.Errorf("%q sees the question %+v (error %v), want one: %t", reader.ID, view.Question, err, open)
				}
			}
			for _, other := range []string{"", bob.ID, olga.ID} {
				wantKind(t, f.answer(filed.ID, other), fault.NotFound)
			}
			if err := f.answer(filed.ID, ann.ID); err != nil {
				t.Fatal(err)
			}
			wantKind(t, f.answer(filed.ID, ann.ID), report.NotAsked)
			wantKind(t, f.questions.Withdraw(t.Context(), filed.ID, q.ID, olga), report.NotAsked)
			wantKind(t, f.questions.Withdraw(t.Context(), filed.ID, uuid.New(), olga), fault.NotFound)
			for reader, reads := range map[report.User]bool{{}: false, {ID: bob.ID}: false, {ID: olga.ID, Official: true}: true, {ID: ann.ID}: true} {
				got, err := f.dialogue(filed.ID, reader)
				if (err == nil) != reads || reads && (len(got.Exchanges) != 1 || got.Exchanges[0].Text != q.Text || got.Exchanges[0].State != report.QuestionAnswered || got.Exchanges[0].Answer.Text != "The one at the bridge.") {
					t.Errorf("%q reads %+v (error %v), want that: %t", reader.ID, got, err, reads)
				}
			}
			f.checkQuestionMessages(filed, privacy)
			work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
			if err != nil || work.Waiting || work.Question != nil || work.Version != filed.Version || len(work.Acts) != 1 || work.Acts[0].Kind != report.Asked || work.Acts[0].Text != "" {
				t.Errorf("officials see %+v (error %v), want the act without its text, and the version of before", work, err)
			}
		})
	}
}

// checkQuestionMessages looks at the messages of a question that was answered.
func (f *fixture) checkQuestionMessages(filed report.Filing, privacy report.Privacy) {
	f.t.Helper()
	for i, r := range f.wantMessages(filed.ID, event.AskedKey, event.AnsweredKey) {
		var body map[string]any
		if err := json.Unmarshal(r.Payload, &body); err != nil {
			f.t.Fatal(err)
		}
		to, named := []string{ann.ID, olga.ID}[i], i == 0 && privacy == report.Public
		if recipient, err := f.keys.Open(r.Report, r.Headers[event.RecipientHeader]); err != nil || recipient != to {
			f.t.Errorf("%s is for %q (error %v), want %q", r.Key, recipient, err, to)
		}
		if (body["reporter_id"] == ann.ID) != named || body["text"] != nil || r.Version != filed.Version {
			f.t.Errorf("%s says %s, want the reporter: %t", r.Key, r.Payload, named)
		}
	}
}

// A reminder and the end of a question come once, however many replicas run the job.
// Then the report is not answered until an official acts on it.
func TestQuestionExpires(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, f.withTarget(report.Anonymous))
	f.ask(filed.ID)
	replicas := func() {
		var g sync.WaitGroup
		for range 3 {
			g.Go(func() {
				if err := scheduletest.Run(t.Context(), f.pool, f.questions.Job()); err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()
	}
	replicas()
	f.wantMessages(filed.ID, event.AskedKey)
	f.halfOver()
	replicas()
	f.wantMessages(filed.ID, event.AskedKey, event.RemindedKey)
	f.over()
	replicas()
	f.wantMessages(filed.ID, event.AskedKey, event.RemindedKey, event.ExpiredKey)
	queue := func(filter report.Filter) int {
		tasks, err := f.workbench.Queue(t.Context(), filter, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(tasks.Tasks)
	}
	if queue(report.Filter{Unanswered: true}) != 1 || queue(report.Filter{Waiting: true}) != 0 {
		t.Error("the report is not back as not answered")
	}
	if got, err := f.dialogue(filed.ID, report.User{ID: ann.ID}); err != nil || got.Exchanges[0].State != report.QuestionExpired || got.Exchanges[0].Answer != nil {
		t.Errorf("the dialogue is %+v (error %v), want an expired question", got, err)
	}
	wantKind(t, f.answer(filed.ID, ann.ID), report.NotAsked)
	if err := f.workbench.AddNote(t.Context(), filed.ID, "called them", olga); err != nil {
		t.Fatal(err)
	}
	if queue(report.Filter{Unanswered: true}) != 0 {
		t.Error("the report is not answered although an official has acted on it")
	}
	if f.ask(filed.ID); queue(report.Filter{Waiting: true}) != 1 {
		t.Error("the report does not wait for the answer to a second question")
	}
}

// An erasure of the reporter deletes the answers, with their questions, and leaves an open
// question as that of somebody who is silent; one of the official deletes who asked.
// Retention deletes the dialogue with the history.
func TestDialogueEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mine, others, old := f.file(kanari, f.withTarget(report.Anonymous)), f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public))
	f.ask(mine.ID)
	if err := f.answer(mine.ID, kanari.ID); err != nil {
		t.Fatal(err)
	}
	f.ask(mine.ID)
	q, err := report.NewQuestion("Where?", report.Official{ID: kanari.ID, Name: kanari.Name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.questions.Ask(t.Context(), others.ID, q); err != nil {
		t.Fatal(err)
	}
	f.ask(old.ID)
	if err := f.answer(old.ID, ann.ID); err != nil {
		t.Fatal(err)
	}
	f.erase(f.newEraser(), kanari.ID)
	if n, open := f.number(`select count(*) from questions where report_id = $1`, mine.ID), f.number(`select count(*) from questions where report_id = $1 and state = 'open'`, mine.ID); n != 1 || open != 1 {
		t.Errorf("%d questions to an erased reporter are left, %d of them open; want the open one", n, open)
	}
	if n := f.number(`select count(*) from questions where report_id = $1 and asked_by = $2`, others.ID, erasure.Someone); n != 1 {
		t.Error("an erased official is still named")
	}
	if found := f.traces(); len(found) != 0 {
		t.Errorf("traces are left in %q", found)
	}
	f.runQuestions()
	if n := f.number(`select count(*) from reports where id = $1 and waiting`, mine.ID); n != 1 {
		t.Error("the report of an erased reporter does not wait for the answer")
	}
	f.exec(`update questions set remind_at = null, ends_at = now() where report_id = $1`, mine.ID)
	f.runQuestions()
	if n := f.number(`select count(*) from reports where id = $1 and not waiting and not_answered and clock_since is not null`, mine.ID); n != 1 {
		t.Error("the question to an erased reporter does not end unanswered")
	}
	f.exec(`delete from questions where report_id = $1`, mine.ID)

	f.mustMove(old.ID, report.Resolved, "")
	f.exec(`update reports set updated_at = updated_at - interval '800 days'`)
	f.exec(`update questions set ended_at = ended_at - interval '800 days' where state <> 'open'`)
	for _, task := range (upkeep.Retention{}).Tasks() {
		if task.Kind != "questions" {
			continue
		}
		tx, err := f.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := task.Remove(t.Context(), tx, 730*day, 0, 100); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := f.number(`select count(*) from questions`), f.number(`select count(*) from answers`); n != 1 || m != 0 {
		t.Errorf("%d questions and %d answers are left, want the open one", n, m)
	}
}

// A replica of an earlier version lets a report wait without a question, or closes one
// with a question: the job repairs both.
func TestQuestionsBesideAnEarlierVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	waits, closed := f.file(ann, f.withTarget(report.Public)), f.file(ann, f.withTarget(report.Public))
	f.exec(`update reports set waiting = true, clock_since = null, due_at = null, overdue_next_at = null where id = $1`, waits.ID)
	f.ask(closed.ID)
	f.exec(`update reports set waiting = false, status = 'resolved' where id = $1`, closed.ID)
	f.runQuestions()
	if n := f.number(`select count(*) from reports where id = $1 and not waiting and due_at is not null`, waits.ID); n != 1 {
		t.Error("a report without a question waits")
	}
	if n := f.number(`select count(*) from questions where state = 'withdrawn' and ended_at is not null`); n != 1 {
		t.Error("the question about a closed report is open")
	}
}

// A clockModel is what must hold of a report after a history of acts.
type clockModel struct {
	*fixture
	id       uuid.UUID
	question uuid.UUID // the open one; zero for none
	closed   bool
	hidden   bool
	lapsed   bool          // the last question was not answered, and nobody has acted since
	used     time.Duration // by the clock, up to now
	category int32
}

func (m *clockModel) waiting() bool { return m.question != uuid.Nil }

// check compares the database with the model.
func (m *clockModel) check(after string) {
	m.t.Helper()
	var waiting, open, lapsed, runs, due bool
	var used, left, target float64
	err := m.pool.QueryRow(m.t.Context(), `
		select waiting, exists (select from questions q where q.report_id = r.id and q.state = 'open'), not_answered, clock_since is not null, due_at is not null,
			extract(epoch from clock_used + coalesce(now() - clock_since, '0')), coalesce(extract(epoch from due_at - clock_since + clock_used), 0), extract(epoch from target)
		from reports r where id = $1`, m.id).Scan(&waiting, &open, &lapsed, &runs, &due, &used, &left, &target)
	if err != nil {
		m.t.Fatal(err)
	}
	if waiting != m.waiting() || open != m.waiting() || lapsed != m.lapsed {
		m.t.Fatalf("after %s: waiting %t, open question %t, not answered %t; want %t and %t", after, waiting, open, lapsed, m.waiting(), m.lapsed)
	}
	if m.closed {
		return
	}
	if runs == m.waiting() || due == m.waiting() {
		m.t.Fatalf("after %s: the clock runs %t, and it is due at a time %t, want both while no question is open: %t", after, runs, due, !m.waiting())
	}
	if math.Abs(used-m.used.Seconds()) > 20 || runs && used < target && math.Abs(left-target) > 1 {
		m.t.Fatalf("after %s: %.0f s of %.0f are used and it is due after %.0f, want %.0f used", after, used, target, left, m.used.Seconds())
	}
}

// act does one thing that may happen to a report, and returns its name.
func (m *clockModel) act(random *rand.Rand) string {
	ctx := m.t.Context()
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	switch n := random.IntN(11); n {
	case 0, 1:
		q, err := m.tryAsk(m.id)
		switch {
		case m.hidden:
			wantKind(m.t, err, report.Hidden)
		case m.closed:
			wantKind(m.t, err, report.Closed)
		case m.waiting():
			wantKind(m.t, err, report.AskedAlready)
		default:
			must(err)
			m.question, m.lapsed = q.ID, false
		}
		return "ask"
	case 2:
		err := m.answer(m.id, ann.ID)
		switch {
		case m.hidden:
			wantKind(m.t, err, report.Hidden)
		case !m.waiting():
			wantKind(m.t, err, report.NotAsked)
		default:
			must(err)
			m.question = uuid.Nil
		}
		return "answer"
	case 3:
		if m.waiting() {
			must(m.questions.Withdraw(ctx, m.id, m.question, olga))
			m.question, m.lapsed = uuid.Nil, false
		}
		return "withdraw the question"
	case 4:
		m.over()
		m.runQuestions()
		if m.waiting() && !m.hidden {
			m.question, m.lapsed = uuid.Nil, true
		}
		return "expire"
	case 5:
		m.halfOver()
		m.runQuestions()
		return "remind"
	case 6, 7:
		m.exec(`update reports set clock_since = clock_since - interval '7 minutes', due_at = due_at - interval '7 minutes',
			overdue_next_at = overdue_next_at - interval '7 minutes' where id = $1`, m.id)
		if !m.waiting() && !m.closed {
			m.used += 7 * time.Minute
		}
		return "seven minutes"
	default:
		return m.actAsOfficial(n, must)
	}
}

func (m *clockModel) actAsOfficial(n int, must func(error)) string {
	ctx := m.t.Context()
	switch {
	case n == 8:
		if m.hidden {
			must(m.moderation.Unhide(ctx, m.id, report.Versions{}, olga))
		} else {
			must(m.moderation.Hide(ctx, m.id, "names a neighbour", report.Versions{}, olga))
		}
		m.hidden, m.lapsed = !m.hidden, false
		return "hide or show"
	case m.hidden:
		must(m.workbench.AddNote(ctx, m.id, "seen", olga))
		m.lapsed = false
		return "note"
	case n == 9:
		m.category = 5 - m.category // 2 or 3
		category, err := m.categories.Category(ctx, m.category)
		must(err)
		_, err = m.Correct(ctx, m.id, report.Correction{Category: &category, Reason: "so it is", By: olga, Official: true})
		must(err)
		m.lapsed = false
		return "correct"
	case m.closed:
		m.mustMove(m.id, report.InProgress, "not done after all")
		m.closed, m.lapsed, m.used = false, false, 0
		return "reopen"
	default:
		m.mustMove(m.id, report.Resolved, "")
		m.closed, m.lapsed, m.question = true, false, uuid.Nil
		return "close"
	}
}

// Whatever happens to a report, its clock stands still exactly while a question is open,
// and goes on with what was left.
func TestClockRestsExactlyWhileAQuestionIsOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`update categories set target_hours = 100 where id = 2`)
	f.exec(`update categories set target_hours = 200 where id = 3`)
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 27))
		d := draft(report.Anonymous)
		d.Category.Target = 100 * time.Hour
		m := &clockModel{fixture: f, id: f.file(ann, d).ID, category: 2}
		m.check("the filing")
		for range 60 {
			m.check(m.act(random))
		}
	}

	// The withdrawal of the report ends its question, too.
	filed := f.file(ann, f.withTarget(report.Public))
	f.ask(filed.ID)
	if _, err := f.Withdraw(t.Context(), filed.ID, ann.ID, report.Versions{}); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`select count(*) from reports r join questions q on q.report_id = r.id
		where r.id = $1 and not r.waiting and q.state = 'withdrawn' and r.clock_since is null`, filed.ID); n != 1 {
		t.Error("the question about a withdrawn report is open")
	}
	wantKind(t, f.answer(filed.ID, ann.ID), report.Hidden)
}
