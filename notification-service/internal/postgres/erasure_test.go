package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
)

// kanari is the person to be found and erased.
var kanari = notification.Reader{UserID: "kanari|7f3a9c", Official: true}

const kanariAddress = "burung@surel.test"

// An erasing is a store that honours erasures, and what it works with.
type erasing struct {
	*postgres.DB
	t      *testing.T
	pool   *pgxpool.Pool
	keys   *event.Keyring
	eraser *erasure.Eraser
}

func newErasing(t *testing.T, options ...postgres.Options) *erasing {
	t.Helper()
	pool := pgtest.Notification(t)
	keys, err := event.ParseKeyring(event.NewKey("k2") + "," + event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return openErasing(t, pool, keys, options...)
}

// openErasing returns an erasing on pool.
func openErasing(t *testing.T, pool *pgxpool.Pool, keys *event.Keyring, options ...postgres.Options) *erasing {
	t.Helper()
	e := &erasing{t: t, pool: pool, keys: keys, eraser: erasure.New(pool, keys, postgres.ErasureSteps(keys), zerolog.Nop())}
	o := postgres.Options{Erased: e.eraser, Keys: keys}
	for _, more := range options {
		o.Mail, o.MailDue, o.Push = more.Mail, more.MailDue, more.Push
	}
	e.DB = postgres.New(pool, o)
	return e
}

// erase works until the erasure is done, without its pauses.
func (e *erasing) erase() erasure.Erasure {
	e.t.Helper()
	state, err := e.eraser.Request(e.t.Context(), "pavel", kanari.UserID)
	if err != nil {
		e.t.Fatal(err)
	}
	for state.DoneAt == nil {
		mustExec(e.t, e.pool, `update erasures set due_at = now()`)
		if _, err := e.eraser.Step(e.t.Context()); err != nil {
			e.t.Fatal(err)
		}
		if state, err = e.eraser.Get(e.t.Context(), state.ID); err != nil {
			e.t.Fatal(err)
		}
	}
	return state
}

// letter returns a dead letter about a report of owner.
func (e *erasing) letter(owner, body string) deadletter.Letter {
	report := uuid.New()
	headers, err := json.Marshal(map[string]any{event.RecipientHeader: e.keys.Seal(report, owner), "x-retries": 3, "x-other": kanari.UserID})
	if err != nil {
		e.t.Fatal(err)
	}
	return deadletter.Letter{
		Queue: votes, MessageID: uuid.NewString(), Type: string(event.VoteReceivedKey),
		Body: []byte(strings.ReplaceAll(body, "REPORT", report.String())), Headers: headers, FailedAt: time.Now(), FirstFailedAt: time.Now(),
	}
}

// letters returns some that speak of kanari, each in another way.
func (e *erasing) letters() []deadletter.Letter {
	return []deadletter.Letter{
		e.letter(kanari.UserID, `{"report_id":"REPORT","report_version":2,"report_title":"x","voter_id":"v","vote_type":"upvote","new_score":1,"timestamp":1}`),
		e.letter("ann", `{"report_id":"REPORT","report_version":2,"report_title":"x","voter_id":"`+kanari.UserID+`","vote_type":"upvote","new_score":1,"timestamp":1}`),
		e.letter(kanari.UserID, `{"report_id":"REPORT","reporter_id":"`+kanari.UserID+`","reporter_name":"Kanari Burung","broken":true}`),
		e.letter("ann", `{"voter_id": "`+kanari.UserID+`", broken`),
	}
}

// unquoted returns one that is not JSON and names kanari without quotes: only a
// search for the id can find it.
func (e *erasing) unquoted() deadletter.Letter {
	return e.letter("ann", `{"voter_id": `+kanari.UserID+`, broken`)
}

// delay keeps letters as messages that wait until a time.
func (e *erasing) delay(letters []deadletter.Letter) {
	e.t.Helper()
	for _, l := range letters {
		mustExec(e.t, e.pool, `
			insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
			values ($1, $2, $3, now() + interval '1 day', $4, '{}', $5)`, l.Queue, l.MessageID, l.Type, l.Body, l.Headers)
	}
}

// addContact gives reader an address, readable unlike those that the service
// keeps, with all that belongs to one. A mail to it waits.
func (e *erasing) addContact(reader notification.Reader, address string) {
	e.t.Helper()
	mustExec(e.t, e.pool, `
		with stream as (
		  select id from streams where name = $1
		), contact as (
		  insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state)
		  select gen_random_uuid(), id, $2::text, convert_to($2, 'utf8'), 'surel.test', 'id', 'Asia/Jakarta', 'active' from stream returning id
		), token as (
		  insert into unsubscribe_tokens (hash, contact_id, kind, token) select convert_to($2, 'utf8'), id, 'digest', $2 from contact
		), code as (
		  insert into contact_codes (stream_id, address_mac) select id, convert_to($2, 'utf8') from stream
		), digest as (
		  insert into digests (stream_id, frequency, at, next_at, sent_seq) select id, 'daily', 420, now(), 0 from stream
		), consent as (
		  insert into mail_consents (stream_id, report_id) select id, gen_random_uuid() from stream
		), mail as (
		  insert into deliveries (channel, lane, target, message_id, kind, body)
		  select 'email', 'surel.test', id::text, gen_random_uuid()::text, 'report.status.updated', convert_to($2, 'utf8') from contact returning id
		)
		insert into delivery_attempts (delivery_id, n, at, duration_ms, class, error)
		select id, 1, now(), 1, 'refused', 'greylisted: ' || $2 from mail`, reader.Own(), address)
}

// archive keeps letters as the service does.
func (e *erasing) archive(letters []deadletter.Letter) error {
	store := deadletter.NewStore(e.pool)
	store.BeforeArchive(e.Erased.Scrub)
	return store.Archive(e.t.Context(), letters)
}

// tablesOf returns the names of all tables.
func tablesOf(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select table_name from information_schema.tables where table_schema = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// live has kanari and others do everything that leaves a trace.
func (e *erasing) live() {
	e.t.Helper()
	city := messages(3, notification.Officials)
	asked := &city[0].Value.Drafts[0].Data
	asked.Type, asked.AskedBy = event.AnsweredKey, kanari.UserID
	mustApply(e.t, e.DB, append(messages(5, kanari.Own()), city...)...)
	mustApply(e.t, e.DB, messages(2, ann.Own())...)
	for _, r := range []notification.Reader{kanari, olga, ann} {
		page, err := e.Streams.List(e.t.Context(), r, nil, false, 10)
		if err != nil {
			e.t.Fatal(err)
		}
		for _, item := range page.Items[:1] {
			if _, err := e.Streams.Mark(e.t.Context(), r, item.ID, false); err != nil {
				e.t.Fatal(err)
			}
		}
	}
	if err := e.archive(append(e.letters(), e.unquoted())); err != nil {
		e.t.Fatal(err)
	}
	e.delay(append(e.letters(), e.unquoted()))
	e.addContact(kanari, kanariAddress)
	e.addContact(ann, "ann@surel.test")
	mustExec(e.t, e.pool, `insert into operations_audit (actor, action, detail) values
		($1, 'discard', '{}'), ('pavel', 'discard', jsonb_build_object('reason', 'asked by ' || $1))`, kanari.UserID)
	mustExec(e.t, e.pool, `insert into dead_letter_notes (queue, error_class, error_group, text, author) values
		('q', 'c', '1', 'asked by ' || $1, 'pavel'), ('q', 'c', '2', 'known', $1), ('q', 'c', '3', 'known', 'pavel')`, kanari.UserID)
	mustExec(e.t, e.pool, `update dead_letters set state = 'discarded', closed_at = now(), close_reason = 'of ' || $1
		where id = (select min(id) from dead_letters)`, kanari.UserID)
}

// tracesIn returns which of the canaries are found in each table that has one.
func (e *erasing) tracesIn() map[string][]string {
	e.t.Helper()
	found := make(map[string][]string)
	for _, table := range tablesOf(e.t, e.pool) {
		var text string
		if err := e.pool.QueryRow(e.t.Context(), `select coalesce(string_agg(r::text, ' '), '') from `+table+` r`).Scan(&text); err != nil {
			e.t.Fatal(err)
		}
		for _, canary := range []string{kanari.UserID, fmt.Sprintf("%x", kanari.UserID), "Kanari Burung", fmt.Sprintf("%x", "Kanari Burung"), kanariAddress, fmt.Sprintf("%x", kanariAddress)} {
			if strings.Contains(text, canary) {
				found[table] = append(found[table], canary)
			}
		}
	}
	return found
}

// wantNoTraces searches all tables.
func (e *erasing) wantNoTraces() {
	e.t.Helper()
	for table, canaries := range e.tracesIn() {
		e.t.Errorf("table %s has %s", table, canaries)
	}
	e.wantNoRecipient()
}

// wantNoRecipient opens the recipients of all dead letters, and of what waits.
func (e *erasing) wantNoRecipient() {
	e.t.Helper()
	rows, err := e.pool.Query(e.t.Context(), `
		select body, headers ->> 'x-recipient' from dead_letters union all select body, headers ->> 'x-recipient' from delayed_messages`)
	if err != nil {
		e.t.Fatal(err)
	}
	var body []byte
	var sealed string
	_, err = pgx.ForEachRow(rows, []any{&body, &sealed}, func() error {
		var about struct {
			ReportID uuid.UUID `json:"report_id"`
		}
		if json.Unmarshal(body, &about) != nil {
			return nil // nobody can tell which report it is about
		}
		recipient, err := e.keys.Open(about.ReportID, sealed)
		if err != nil || recipient == kanari.UserID {
			e.t.Errorf("a message is for %q (error %v)", recipient, err)
		}
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// Nothing is left of an erased person, in their stream or elsewhere. Others keep
// what they have.
func TestErasure(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.live()

	state := e.erase()
	e.wantNoTraces()
	for step, n := range map[string]int64{
		"contact":       5, // with a digest, a consent, a code and the mail that waits
		"notifications": 5, "stream": 4, "askers": 1, "dead_letters": 7, "delayed_messages": 5, "audit": 2,
	} {
		if state.Removed[step] != n {
			t.Errorf("step %s removed %d, want %d", step, state.Removed[step], n)
		}
	}
	if n := count(t, e.pool, `select (select count(*) from notifications) * 100 + (select count(*) from dead_letters)`); n != 505 {
		t.Errorf("%d notifications and dead letters of others (as hundreds and ones), want 505", n)
	}
	if n := count(t, e.pool, `select count(*) from dead_letter_notes`); n != 2 {
		t.Errorf("%d notes, want the two that are not about who is erased", n)
	}
	for _, table := range []string{"contacts", "unsubscribe_tokens", "contact_codes", "digests", "mail_consents", "deliveries", "delivery_attempts"} {
		if n := count(t, e.pool, `select count(*) from `+table); n != 1 {
			t.Errorf("%s has %d rows, want the one of who is not erased", table, n)
		}
	}
	for _, other := range []notification.Reader{olga, ann} {
		if v, err := e.Streams.View(t.Context(), other); err != nil || len(v.Heads) != len(other.Streams()) {
			t.Errorf("%s: view %+v, error %v", other.UserID, v, err)
		}
	}
	for step, n := range e.erase().Removed {
		if n != 0 {
			t.Errorf("the second time step %s removed %d", step, n)
		}
	}
}

// Nothing that was on its way when somebody was erased brings the person back: no
// message, no dead letter, no open page.
func TestErasedStaysErased(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	mustApply(t, e.DB, messages(2, kanari.Own())...)
	e.erase()

	late := message(kanari.Own(), notification.Officials)
	late.Value.Drafts[1].Data.AskedBy = kanari.UserID
	if err := e.eraser.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	applied := mustApply(t, e.DB, late, message(ann.Own()))
	if len(applied.Batch.Notifications) != 2 || len(applied.Batch.Feed) != 2 || applied.Seen != 0 {
		t.Errorf("%v and %d feed events, want what is for others", places(applied.Batch.Notifications), len(applied.Batch.Feed))
	}
	if again := mustApply(t, e.DB, late); again.Seen != 1 {
		t.Error("the message is not known when it comes again")
	}
	if err := e.archive(e.letters()); err != nil {
		t.Fatal(err)
	}
	if v, err := e.Streams.View(t.Context(), kanari); err == nil {
		t.Errorf("the open page sees %+v, want an error", v)
	}
	e.wantNoTraces()

	// Nor after the key of the hash was moved behind another one.
	if _, err := e.Effects.Apply(t.Context(), votes, []postgres.Message{message(kanari.Own())}); err != nil {
		t.Fatal(err)
	}
	e.wantNoTraces()
}

// Notifications written while the stream is removed are removed with it: none is left
// without a stream, where nobody would find it.
func TestErasureBesideTheConsumer(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	mustApply(t, e.DB, message(kanari.Own()))
	writer, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback(t.Context()) }()
	_, err = writer.Exec(t.Context(), `
		with numbered as (update streams set last_seq = last_seq + 1 where name = $1 returning id, last_seq)
		insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data)
		select id, last_seq, gen_random_uuid(), 'a message', 'report.vote.received', gen_random_uuid(), 1, '{}' from numbered`, kanari.Own())
	if err != nil {
		t.Fatal(err)
	}
	steps := postgres.ErasureSteps(e.keys)
	stream := steps[slices.IndexFunc(steps, func(s erasure.Step) bool { return s.Name == "stream" })]
	erased := make(chan error, 1)
	go func() {
		erased <- pgx.BeginFunc(t.Context(), e.pool, func(tx pgx.Tx) error {
			for next := "first"; next != ""; {
				var err error
				if next, _, err = stream.Do(t.Context(), tx, kanari.UserID, "", 100); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	waitForLock(t, e.pool)
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-erased; err != nil {
		t.Fatal(err)
	}
	if n := count(t, e.pool, `select (select count(*) from notifications) + (select count(*) from streams where name = $1)`, kanari.Own()); n != 0 {
		t.Errorf("%d rows of the stream are left", n)
	}
}

// An erasure that was made under a key is honoured, and asked for again, under
// the next one.
func TestErasureOutlivesItsKey(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	k1, k2 := event.NewKey("k1"), event.NewKey("k2")
	var all []*erasing
	for _, ring := range []string{k1, k2 + "," + k1} {
		keys, err := event.ParseKeyring(ring)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, openErasing(t, pool, keys))
	}
	all[0].erase()
	mustApply(t, all[1].DB, message(kanari.Own()))
	all[1].wantNoTraces()
	all[1].erase()
	mustApply(t, all[1].DB, message(kanari.Own()))
	all[1].wantNoTraces()
	if n := count(t, pool, `select count(*) from erasures where user_mac is not null`); n != 1 {
		t.Errorf("%d hashes of the person, want one", n)
	}
}
