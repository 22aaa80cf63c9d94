package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

var rules = webhook.Rules{}

// endpoint keeps an endpoint that asks for what filter picks.
func endpoint(t *testing.T, store *postgres.DB, filter webhook.Filter, scopes ...string) webhook.Endpoint {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	e, _ := webhook.NewEndpoint(webhook.Registration{
		URL: "https://hooks.example.org/key", Description: "Work orders", Filter: filter, Scopes: scopes, Order: webhook.OrderReport, InFlight: 2,
	}, keys)
	if err := store.Endpoints.Create(t.Context(), "pavel", &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// deliver writes a delivery in a state, and returns its id.
func deliver(t *testing.T, pool *pgxpool.Pool, e webhook.Endpoint, state string, age time.Duration) (id int64) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		insert into deliveries (channel, lane, target, message_id, kind, report_id, body, state, retries, attempts, created_at, not_after)
		values ('webhook', $1, $1, $2, 'report.created', $3, '{}', $4, 9, 10, now() - $5::interval, now()) returning id`,
		e.ID.String(), uuid.NewString(), uuid.New(), state, age).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// notify writes a notification, as the effect of a message that came so long
// ago, and returns the message's id.
func notify(t *testing.T, pool *pgxpool.Pool, d *notification.Data, age time.Duration) string {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[5-i] = byte(ms >> (8 * i))
	}
	messageID := uuid.NewString()
	mustExec(t, pool, `
		with s as (
		  insert into streams as s (name, last_seq) values ('role:official', 1)
		  on conflict (name) do update set last_seq = s.last_seq + 1 returning id, last_seq)
		insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at)
		select id, last_seq, $1, $2, $3, $4, $5, $6, $7 from s`,
		id, messageID, d.Type, d.ReportID, d.ReportVersion, data, at)
	return messageID
}

func created(category int32) *notification.Data {
	return &notification.Data{
		Type: event.ReportCreatedKey, ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", Status: event.Pending,
		CategoryID: category, CategoryName: "Roads", HappenedAt: time.Now().UTC().Truncate(time.Second),
	}
}

func TestWebhookIsKept(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	filter := webhook.Filter{Types: []string{"report.created"}, Categories: []int32{2, 3}, Area: &webhook.Area{107.5, -7, 107.8, -6.8}}
	want := endpoint(t, store, filter)
	want.Scopes = []string{} // as the database says none
	got, err := store.Endpoints.Get(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if g, w := jsonText(t, got), jsonText(t, want); g != w {
		t.Errorf("read as\n%s\nwant\n%s", g, w)
	}
	other := endpoint(t, store, webhook.Filter{})
	page, err := store.Endpoints.List(t.Context(), uuid.Nil, 1)
	if err != nil || len(page) != 1 || page[0].ID != other.ID {
		t.Fatalf("first page %v (error %v), want the newest", page, err)
	}
	if page, err = store.Endpoints.List(t.Context(), page[0].ID, 5); err != nil || len(page) != 1 || page[0].ID != want.ID {
		t.Errorf("second page %v (error %v), want the older one", page, err)
	}
	if n := count(t, pool, `select count(*) from operations_audit where actor = 'pavel' and action = 'webhook_create'`); n != 2 {
		t.Errorf("%d entries in the audit log, want 2", n)
	}
	var detail string
	if err := pool.QueryRow(t.Context(), `select string_agg(detail::text, '') from operations_audit`).Scan(&detail); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(detail, "/key") || !strings.Contains(detail, "hooks.example.org") {
		t.Errorf("the audit log has %s, want the host of the address and no more of it", detail)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// When two operators change the same version, the slower one is refused.
func TestWebhookChangesAtItsVersion(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	change := webhook.Change{URL: new("https://other.example.org"), Categories: &[]int32{4}, Area: new((*webhook.Area)(nil))}
	changed, err := store.Endpoints.Change(t.Context(), "pavel", e.ID, e.Version, change, rules)
	if err != nil || changed.Version != 2 || changed.URL != "https://other.example.org" || len(changed.Filter.Categories) != 1 || changed.Description != e.Description {
		t.Fatalf("changed to %+v (error %v)", changed, err)
	}
	if _, err := store.Endpoints.Change(t.Context(), "slow", e.ID, e.Version, change, rules); fault.KindOf(err) != webhook.Stale {
		t.Errorf("change of an old version: %v, want it refused", err)
	}
	if err := store.Endpoints.Delete(t.Context(), "slow", e.ID, e.Version); fault.KindOf(err) != webhook.Stale {
		t.Errorf("removal of an old version: %v, want it refused", err)
	}
	bad := webhook.Change{URL: new("https://10.0.0.1")}
	if _, err := store.Endpoints.Change(t.Context(), "pavel", e.ID, 0, bad, rules); fault.KindOf(err) != fault.Invalid {
		t.Errorf("change to an address that the rules refuse: %v", err)
	}
	if got, err := store.Endpoints.Get(t.Context(), e.ID); err != nil || got.Version != 2 || got.URL != changed.URL {
		t.Errorf("after the refusals it is %+v (error %v)", got, err)
	}
}

func TestWebhookIsRemoved(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	for _, state := range []string{"waiting", "held", "done", "dead"} {
		deliver(t, pool, e, state, 0)
	}
	if err := store.Endpoints.Delete(t.Context(), "pavel", e.ID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Endpoints.Get(t.Context(), e.ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("read after the removal: %v", err)
	}
	if got := states(t, pool, e); got != "cancelled:2 dead:1 done:1" {
		t.Errorf("deliveries are %s", got)
	}
}

// states counts the deliveries to e by state.
func states(t *testing.T, pool *pgxpool.Pool, e webhook.Endpoint) (counts string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		select coalesce(string_agg(state || ':' || n, ' ' order by state), '') from (
		  select state, count(*) as n from deliveries where target = $1 group by state) s`, e.ID.String()).Scan(&counts)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// A secret before a rotation signs beside the new one until its end, or ends at
// once.
func TestWebhookSecretIsRotated(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	first := e.Secrets.Sealed
	e, err := store.Endpoints.Rotate(t.Context(), "pavel", e.ID, "second", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if e.Secrets.Sealed != "second" || e.Secrets.Previous == nil || *e.Secrets.Previous != first {
		t.Errorf("secrets %+v, want the second, and the first beside it", e.Secrets)
	}
	if end := e.Secrets.PreviousUntil; end == nil || end.Sub(e.Secrets.Since) != time.Hour {
		t.Errorf("the first one ends at %v, want an hour after %v", end, e.Secrets.Since)
	}
	e, err = store.Endpoints.Rotate(t.Context(), "pavel", e.ID, "third", 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.Secrets.Sealed != "third" || e.Secrets.Previous != nil || e.Secrets.PreviousUntil != nil {
		t.Errorf("secrets %+v, want the third alone", e.Secrets)
	}
}

// Deliveries to a disabled endpoint are kept for it; none is lost unless an operator
// says so.
func TestWebhookIsHeld(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for _, tt := range []struct {
		sendHeld bool
		want     string
	}{{true, "done:1 waiting:2"}, {false, "cancelled:2 done:1"}} {
		e := endpoint(t, store, webhook.Filter{})
		deliver(t, pool, e, "waiting", 0)
		deliver(t, pool, e, "done", 0)
		e, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID)
		if err != nil || e.State != webhook.Disabled || e.StateReason != webhook.ByOperator {
			t.Fatalf("disabled: %+v (error %v)", e, err)
		}
		deliver(t, pool, e, "held", 0)
		if got := states(t, pool, e); got != "done:1 held:2" {
			t.Fatalf("disabled, its deliveries are %s", got)
		}
		if _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); !errors.Is(err, webhook.ErrDisabled) {
			t.Errorf("disabled twice: %v", err)
		}
		if e, err = store.Endpoints.Enable(t.Context(), "pavel", e.ID, tt.sendHeld); err != nil || e.State != webhook.Enabled || e.StateReason != "" {
			t.Fatalf("enabled: %+v (error %v)", e, err)
		}
		if got := states(t, pool, e); got != tt.want {
			t.Errorf("enabled, its deliveries are %s, want %s", got, tt.want)
		}
		if n := count(t, pool, `select count(*) from deliveries where target = $1 and state = 'waiting' and (retries > 0 or due_at > now() or not_after < now() + interval '6 days')`, e.ID.String()); n != 0 {
			t.Errorf("%d of them do not start over", n)
		}
		if _, err := store.Endpoints.Enable(t.Context(), "pavel", e.ID, true); !errors.Is(err, webhook.ErrEnabled) {
			t.Errorf("enabled twice: %v", err)
		}
	}
}

func TestDeliveryIsResent(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	id := deliver(t, pool, e, "dead", time.Hour)
	mustExec(t, pool, `
		insert into delivery_attempts (delivery_id, n, at, duration_ms, status, class, error, response)
		values ($1, 1, now(), 12, 500, 'server_error', 'answered 500', 'oops'), ($1, 2, now(), 15000, null, 'timeout', 'no answer', '')`, id)
	before, _, err := store.Deliveries.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	after, err := store.Deliveries.Resend(t.Context(), "pavel", id)
	if err != nil {
		t.Fatal(err)
	}
	if after.State != "waiting" || after.MessageID != before.MessageID || after.Attempts != before.Attempts || after.DoneAt != nil {
		t.Errorf("resent: %+v, want it waiting under its id with its attempts", after)
	}
	_, attempts, err := store.Deliveries.Get(t.Context(), id)
	if err != nil || len(attempts) != 2 || attempts[0].Status == nil || *attempts[0].Status != 500 || attempts[0].Response != "oops" ||
		attempts[1].Status != nil || attempts[1].Duration != 15*time.Second {
		t.Errorf("attempts %+v (error %v)", attempts, err)
	}
	if _, err := store.Deliveries.Resend(t.Context(), "pavel", id+1); !errors.Is(err, webhook.ErrNoDelivery) {
		t.Errorf("resend what is not there: %v", err)
	}
	if _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Deliveries.Resend(t.Context(), "pavel", id); !errors.Is(err, webhook.ErrDisabled) {
		t.Errorf("resend to a disabled endpoint: %v", err)
	}
}

func TestDeliveriesArePaged(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e, other := endpoint(t, store, webhook.Filter{}), endpoint(t, store, webhook.Filter{})
	var ids []int64
	for _, state := range []string{"done", "dead", "done", "dead", "done"} {
		ids = append(ids, deliver(t, pool, e, state, 0))
		deliver(t, pool, other, state, 0)
	}
	list := func(q webhook.RecordQuery) (got []int64) {
		t.Helper()
		records, err := store.Deliveries.List(t.Context(), e.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			got = append(got, r.ID)
		}
		return got
	}
	for _, tt := range []struct {
		query webhook.RecordQuery
		want  []int64
	}{
		{webhook.RecordQuery{Limit: 2}, []int64{ids[4], ids[3]}},
		{webhook.RecordQuery{Limit: 9, Before: ids[3]}, []int64{ids[2], ids[1], ids[0]}},
		{webhook.RecordQuery{Limit: 9, State: "dead"}, []int64{ids[3], ids[1]}},
		{webhook.RecordQuery{Limit: 9, Type: "report.created", State: "done", Before: ids[4]}, []int64{ids[2], ids[0]}},
		{webhook.RecordQuery{Limit: 9, Type: "webhook.test"}, nil},
	} {
		if got := list(tt.query); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%+v: %v, want %v", tt.query, got, tt.want)
		}
	}
}

// A recovery sends what an endpoint did not get in the time, each event once,
// and nothing that it has or never asked for.
func TestWebhookIsRecovered(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{Types: []string{"report.created"}, Categories: []int32{2}})
	for _, state := range []string{"dead", "cancelled", "done", "waiting"} {
		deliver(t, pool, e, state, time.Hour)
	}
	old := deliver(t, pool, e, "dead", 3*time.Hour)
	mustExec(t, pool, `update deliveries set kind = 'webhook.test' where id = $1`, deliver(t, pool, e, "dead", time.Hour))
	missed := notify(t, pool, created(2), time.Hour)
	notify(t, pool, created(2), 3*time.Hour)
	notify(t, pool, created(5), time.Hour) // of another category
	vote := created(2)
	vote.Type, vote.Score = event.VoteReceivedKey, new(int64)
	notify(t, pool, vote, time.Hour) // of another type
	sent := notify(t, pool, created(2), time.Hour)
	mustExec(t, pool, `update deliveries set message_id = $1 where state = 'done'`, sent) // which it has
	for _, key := range notification.Private {
		private := created(2)
		private.Type = key
		notify(t, pool, private, time.Hour)
	}

	window := webhook.Window{Since: time.Now().Add(-2 * time.Hour), Until: time.Now()}
	before := states(t, pool, e)
	want := webhook.Recovery{Resent: 2, Created: 1}
	if got, err := store.Deliveries.Recover(t.Context(), "pavel", e.ID, window, true); err != nil || got != want {
		t.Errorf("a dry run counts %+v (error %v), want %+v", got, err, want)
	}
	if got := states(t, pool, e); got != before {
		t.Errorf("after a dry run the deliveries are %s, before %s", got, before)
	}
	if got, err := store.Deliveries.Recover(t.Context(), "pavel", e.ID, window, false); err != nil || got != want {
		t.Errorf("recovered %+v (error %v), want %+v", got, err, want)
	}
	if got := states(t, pool, e); got != "dead:2 done:1 waiting:4" { // the old one and the test stay
		t.Errorf("recovered, the deliveries are %s", got)
	}
	if r, _, err := store.Deliveries.Get(t.Context(), old); err != nil || r.State != "dead" {
		t.Errorf("one from before the window: %+v (error %v)", r, err)
	}
	if n := count(t, pool, `select count(*) from deliveries where target = $1 and message_id = $2 and state = 'waiting'`, e.ID.String(), missed); n != 1 {
		t.Errorf("%d deliveries of the missed event, want 1", n)
	}
	if got, err := store.Deliveries.Recover(t.Context(), "pavel", e.ID, window, false); err != nil || got != (webhook.Recovery{}) {
		t.Errorf("recovered twice: %+v (error %v), want nothing more", got, err)
	}
}

// A recovery makes of a notification the same event that the message would have made.
func TestRecoveredEventIsTheSame(t *testing.T) {
	t.Parallel()
	subject := event.Subject{ReportID: uuid.New(), ReportVersion: 3, ReportTitle: "Pothole", ReporterID: "ann", Timestamp: 1_795_320_000}
	for _, m := range []event.Message{
		&event.ReportCreated{Subject: subject, CategoryID: 2, CategoryName: "Roads", PrivacyLevel: event.Public},
		&event.StatusUpdate{Subject: subject, NewStatus: event.Resolved, Note: "Done."},
		&event.VoteReceived{Subject: subject, VoterID: "ben", VoteType: event.Upvote, NewScore: new(int64(7))},
	} {
		want, err := webhook.EventOf("m1", m)
		if err != nil {
			t.Fatal(err)
		}
		data := notification.Of(m, "").Feed
		if got, err := webhook.EventOfData("m1", &data); err != nil || jsonText(t, got) != jsonText(t, want) {
			t.Errorf("%s is recovered as %s (error %v), want %s", m.Key(), got.Body, err, want.Body)
		}
	}
}

func TestWebhookSummary(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e, idle := endpoint(t, store, webhook.Filter{}), endpoint(t, store, webhook.Filter{})
	for i := range 20 {
		id := deliver(t, pool, e, "done", time.Hour)
		mustExec(t, pool, `update deliveries set attempts = 2 where id = $1`, id)
		mustExec(t, pool, `
			insert into delivery_attempts (delivery_id, n, at, duration_ms, class)
			values ($1, 1, now(), 15000, 'timeout'), ($1, 2, now(), $2, 'delivered')`, id, (i+1)*10)
	}
	deliver(t, pool, e, "dead", time.Hour)
	deliver(t, pool, e, "waiting", time.Hour) // after an attempt
	deliver(t, pool, e, "held", 0)
	deliver(t, pool, e, "done", 25*time.Hour)
	mustExec(t, pool, `insert into lanes (channel, lane, open_until) values ('webhook', $1, now() + interval '1 minute')`, e.ID.String())
	summaries, err := store.Endpoints.Summaries(t.Context(), []uuid.UUID{e.ID, idle.ID})
	if err != nil {
		t.Fatal(err)
	}
	s := summaries[e.ID]
	if s.Succeeded != 20 || s.Failed != 2 || s.Waiting != 1 || s.Held != 1 || s.P95 == nil || *s.P95 != 190*time.Millisecond || s.OpenUntil == nil ||
		s.OldestWaiting == nil || time.Since(*s.OldestWaiting) < time.Hour {
		t.Errorf("summary %s", jsonText(t, s))
	}
	if s := summaries[idle.ID]; s != (webhook.Summary{}) {
		t.Errorf("summary of one that had nothing: %s", jsonText(t, s))
	}
}

// Attempts are counted in the step in which they were made, whenever their delivery was;
// those that fail have no part in the percentile.
func TestAttemptsOverTime(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e, other := endpoint(t, store, webhook.Filter{}), endpoint(t, store, webhook.Filter{})
	since := time.Now().UTC().Truncate(time.Minute).Add(-59 * time.Minute)
	attempt := func(delivery int64, n int, at time.Time, ms int, class string) {
		t.Helper()
		mustExec(t, pool, `
			insert into delivery_attempts (delivery_id, n, at, duration_ms, class) values ($1, $2, $3, $4, $5)`, delivery, n, at, ms, class)
	}
	old := deliver(t, pool, e, "done", 26*time.Hour)
	attempt(old, 1, since.Add(-time.Second), 15000, "timeout") // before
	attempt(old, 2, since, 15000, "timeout")
	attempt(old, 3, since.Add(59*time.Second), 40, "2xx")
	for i := range 20 {
		attempt(deliver(t, pool, e, "done", time.Hour), 1, since.Add(30*time.Minute), (i+1)*10, "2xx")
	}
	attempt(deliver(t, pool, other, "done", time.Hour), 1, since, 1, "2xx")
	past, err := store.Deliveries.Attempts(t.Context(), e.ID, since, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.Past{Since: since, Step: time.Minute, Points: []webhook.Point{
		{At: since, Succeeded: 1, Failed: 1, P95: new(40 * time.Millisecond)},
		{At: since.Add(30 * time.Minute), Succeeded: 20, P95: new(190 * time.Millisecond)},
	}}
	past.Since = past.Since.UTC()
	for i := range past.Points {
		past.Points[i].At = past.Points[i].At.UTC()
	}
	if got := jsonText(t, past); got != jsonText(t, want) {
		t.Errorf("the past is\n%s, want\n%s", got, jsonText(t, want))
	}
	if past, err := store.Deliveries.Attempts(t.Context(), uuid.New(), since, time.Minute); err != nil || !past.Since.Equal(since) || len(past.Points) != 0 {
		t.Errorf("the past of one that had nothing: %s (error %v)", jsonText(t, past), err)
	}
}

// An endpoint with more deliveries than are read has a past that begins later, and lacks
// nothing from then on.
func TestAttemptsOfABusyEndpoint(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	since := time.Now().UTC().Truncate(time.Hour).Add(-167 * time.Hour)
	mustExec(t, pool, `
		with made as (
		  insert into deliveries (channel, lane, target, message_id, kind, body, state, created_at)
		  select 'webhook', $1::text, $1::text, 'm' || n, 'k', '', 'done', $2::timestamptz + n * interval '20 seconds' from generate_series(1, 25000) n
		  returning id, created_at)
		insert into delivery_attempts (delivery_id, n, at, duration_ms, class) select id, 1, created_at, 10, '2xx' from made`, e.ID.String(), since)
	mustExec(t, pool, `analyze deliveries, delivery_attempts`)
	began := time.Now()
	past, err := store.Deliveries.Attempts(t.Context(), e.ID, since, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// 5,000 are not read, which are those of 27 hours and 46 minutes.
	if begin := since.Add(28 * time.Hour); !past.Since.Equal(begin) || !past.Points[0].At.Equal(begin) || past.Points[0].Succeeded != 180 {
		t.Errorf("the past begins at %v with %s, want %v with all 180", past.Since, jsonText(t, past.Points[0]), begin)
	}
	t.Logf("20,000 deliveries were read in %v", time.Since(began))
}
