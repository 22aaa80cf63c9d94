package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
)

// numbat is the name that is hidden, and numbatID its person's.
const (
	numbat   = "Numbat Kanari"
	numbatID = "numbat-id"
)

// namedBodies are messages about the report of numbat, as they may be read, and as they
// may not: their sender, or what lay between, has broken them.
func namedBodies(report uuid.UUID) map[string]string {
	id := report.String()
	whole := `{"report_id":"` + id + `","reporter_id":"` + numbatID + `","reporter_name":"` + numbat + `","privacy_level":"public"}`
	quoted := strings.ReplaceAll(whole, `"`, `\"`)
	return map[string]string{
		"whole":      whole,
		"capitals":   strings.ReplaceAll(whole, id, strings.ToUpper(id)),
		"cut":        whole[:strings.Index(whole, `,"privacy`)-1],
		"list":       `[` + whole + `]`,
		"text":       `"` + quoted + `"`,
		"inside":     `{"report_id":"` + id + `","data":` + whole + `}`,
		"text in it": `{"report_id":"` + id + `","data":"` + quoted + `"}`,
		"words":      "report " + id + " of " + numbat + " (" + numbatID + ")",
		"no text":    "\xff\xfe" + whole + "\xff",
	}
}

// wantNoName fails for each table but streams that has the name, or the id of its person.
func wantNoName(t *testing.T, pool *pgxpool.Pool, when string) {
	t.Helper()
	for _, table := range tablesOf(t, pool) {
		for _, text := range []string{numbat, numbatID} {
			if table == "streams" && text == numbatID {
				continue // whom a stream is for
			}
			// A bytea is written as hexadecimal digits.
			if n := count(t, pool, `select count(*) from `+table+` r where position($1 in r::text) > 0
				or position(encode(convert_to($1, 'UTF8'), 'hex') in r::text) > 0`, text); n > 0 {
				t.Errorf("%s: %d rows of %s have %q", when, n, table, text)
			}
		}
	}
}

// keepNamed puts each body where messages wait or failed.
func keepNamed(t *testing.T, pool *pgxpool.Pool, bodies map[string]string) {
	t.Helper()
	for name, body := range bodies {
		for _, state := range []string{"open", "discarded", "resolved"} {
			mustExec(t, pool, `insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at, state)
				values ('queue.report_created', $1, '', $2, '{}', '{"x-final-error":"broken at byte 99"}', '', 'broken at byte 99', 'broken at byte N', now(), now(), $3)`, name, []byte(body), state)
		}
		mustExec(t, pool, `insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
			values ('queue.report_created', $1, 'report.created', now() + interval '1 day', $2, '{}', '{}')`, name, []byte(body))
	}
}

// Once a reporter has hidden the name, nothing here has it: neither dead letters of any
// state, nor delayed messages, nor what is kept of notifications, deliveries and what
// endpoints were sent. Notifications from before, as well as those of messages that come
// late, are treated as about an anonymous report. A process that dies at any point does
// it again when the message comes again.
func TestNameHidden(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	z := zebra(uuid.New())
	report := uuid.UUID(z)
	named := func(m event.Message) postgres.Message {
		m.About().ReporterID = numbatID
		return postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, numbatID)}
	}
	created := &event.ReportCreated{Subject: z.subject(1), CategoryID: 2, CategoryName: "Lights", ReporterName: numbat, PrivacyLevel: event.Public}
	mustApply(t, store, named(created), named(z.move(2)))
	endpoint(t, store, webhook.Filter{})
	for _, m := range []event.Message{created, z.move(2), z.vote(3)} {
		m.About().ReporterID = numbatID
		mustExpand(t, store, m)
	}
	mustExec(t, pool, `update deliveries set state = 'held' where kind = 'report.vote.received'`)
	bodies := namedBodies(report)
	keepNamed(t, pool, bodies)
	other := uuid.New()
	keepNamed(t, pool, map[string]string{"another report": `{"report_id":"` + other.String() + `","reporter_id":"bob","privacy_level":"public"}`})

	hidden := &event.ReportModerated{Subject: z.subject(4), CategoryID: 2, Action: event.NameHidden}
	message := postgres.Message{ID: uuid.NewString(), Value: notification.Of(hidden, numbatID)}
	// The process dies between the first transaction and the effect of the message.
	mustExec(t, pool, `create function die() returns trigger language plpgsql as $$ begin raise 'killed'; end $$`)
	mustExec(t, pool, `create trigger die before insert on processed_messages for each row execute function die()`)
	if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{message}); err == nil {
		t.Fatal("the process did not die")
	}
	mustExec(t, pool, `drop trigger die on processed_messages`)
	if n := count(t, pool, `select count(*) from notifications where type = 'report.moderated'`); n != 0 {
		t.Fatalf("%d notifications were written by the process that died", n)
	}
	keepNamed(t, pool, map[string]string{"kept in between": bodies["whole"]})
	mustApply(t, store, message) // the next process gets it once more
	mustApply(t, store, named(z.vote(3)))

	wantNoName(t, pool, "after the message")
	if n := count(t, pool, `select count(*) from notifications where not withheld`); n != 0 {
		t.Errorf("%d notifications are treated as about a public report", n)
	}
	if n := count(t, pool, `select count(*) from dead_letters where convert_from(body, 'UTF8') like '%"reporter_id":"bob"%'`); n != 3 {
		t.Errorf("%d dead letters of another report are as they were, want 3", n)
	}
	if n := count(t, pool, `select count(*) from dead_letters where message_id <> 'another report' and position($1 in lower(convert_from(body, 'UTF8'))) = 0`, report.String()); n != 0 {
		t.Errorf("%d dead letters say no longer which report they are about", n)
	}

	// So are those that were on their way.
	letters, parked := deadletter.NewStore(pool), delay.NewStore(pool)
	letters.BeforeArchive(store.Erased.Scrub)
	parked.BeforePark(store.Erased.Scrub)
	for name, body := range bodies {
		late := deadletter.Letter{
			Queue: "queue.report_created", MessageID: name + " late", Body: []byte(body), Headers: []byte(`{"x-final-error":"broken at byte 99"}`),
			Error: "broken at byte 99", Group: "broken at byte N", FirstFailedAt: time.Now(), FailedAt: time.Now(),
		}
		if err := letters.Archive(t.Context(), []deadletter.Letter{late}); err != nil {
			t.Fatal(err)
		}
		waits := delay.Message{ID: name + " late", DueAt: time.Now().Add(time.Hour), Body: []byte(body), Headers: []byte(`{}`)}
		outcomes, err := parked.Park(t.Context(), "queue.report_created", []delay.Message{waits}, false, false)
		if err != nil || outcomes[waits.ID] != delay.Parked {
			t.Fatalf("parking %s: %v, error %v", name, outcomes, err)
		}
	}
	wantNoName(t, pool, "after late messages")
	// How long a broken body was may tell how long the name is.
	if n := count(t, pool, `select (select count(*) from dead_letters l where l::text like '%byte 99%' and body = convert_to($1, 'UTF8'))
		+ (select count(*) from dead_letter_attempts a join dead_letters l on l.id = a.dead_letter_id where a.error like '%byte 99%' and l.body = convert_to($1, 'UTF8'))`,
		`{"report_id":"`+report.String()+`"}`); n != 0 {
		t.Errorf("%d dead letters or attempts say where the body was broken", n)
	}
}
