package postgres_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/story"
)

// told is a message that was handled in two queues, has a number in the officials' stream
// and in a reader's, was sent to one endpoint at the second attempt and waits for another.
type told struct {
	message          string
	report           uuid.UUID
	endpoint, behind uuid.UUID
}

func writeStory(t *testing.T, pool *pgxpool.Pool) told {
	t.Helper()
	s := told{uuid.NewString(), uuid.New(), uuid.New(), uuid.New()}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into processed_messages (consumer, message_id, processed_at)
		select q, $1, now() - interval '60 seconds' from unnest(array['queue.report_created', 'queue.webhooks']) q`, s.message)
	exec(`insert into streams (name, last_seq) values ('role:official', 41), ('user:secret', 7)`)
	exec(`insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at)
		select id, last_seq, gen_random_uuid(), $1, 'report.created', $2, 1, '{}', now() - interval '59 seconds' from streams`, s.message, s.report)
	for i, endpoint := range []uuid.UUID{s.endpoint, s.behind} {
		exec(`insert into webhook_endpoints (id, url, secret) values ($1, 'https://secret.example.org', 'secret')`, endpoint)
		exec(`insert into deliveries (channel, lane, target, message_id, kind, body, state, attempts, last_class, created_at, done_at)
			values ('webhook', $1::text, $1::text, $2, 'report.created', '{}', $3, $4, '', now() - interval '58 seconds',
				case when $4 > 0 then now() - interval '50 seconds' end)`,
			endpoint, s.message, []string{"done", "waiting"}[i], []int{2, 0}[i])
	}
	exec(`insert into delivery_attempts (delivery_id, n, at, duration_ms, status, class, error, response)
		select id, n, done_at - (2 - n) * interval '5 seconds', 120, status, class, 'secret', 'secret'
		from deliveries, (values (1, 503, 'answer'), (2, 200, 'ok')) a (n, status, class) where state = 'done'`)
	// Of readers there is more, under the ids of their notifications.
	exec(`insert into deliveries (channel, lane, target, message_id, kind, body)
		select c, 'secret', 'secret', n.id::text, n.type, '' from notifications n, unnest(array['email', 'push']) c`)
	return s
}

// The story leads from the queues to the webhooks, and has nothing of readers.
func TestStoryHasTheWebhooksAndNoReader(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	s := writeStory(t, pool)
	stories := postgres.NewStories(pool, "queue.report_created", "queue.webhooks")
	read := func(message string, report uuid.UUID) []story.Entry {
		t.Helper()
		entries, err := stories.Entries(t.Context(), message, report)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	got := read(s.message, s.report)
	type fact struct {
		kind  story.Kind
		place string
	}
	want := []fact{
		{story.Handled, "queue.report_created"}, {story.Handled, "queue.webhooks"}, {story.Numbered, "officials"},
		{story.DeliveryWritten, s.endpoint.String()}, {story.DeliveryWritten, s.behind.String()},
		{story.DeliveryAttempted, s.endpoint.String()}, {story.DeliveryAttempted, s.endpoint.String()}, {story.DeliveryEnded, s.endpoint.String()},
	}
	var facts []fact
	for _, e := range got {
		facts = append(facts, fact{e.Kind, e.Place})
	}
	slices.SortFunc(facts[0:2], func(a, b fact) int { return len(b.place) - len(a.place) }) // at the same time
	if facts[3].place != s.endpoint.String() {
		facts[3], facts[4] = facts[4], facts[3] // likewise
		got[3], got[4] = got[4], got[3]
	}
	if !slices.Equal(facts, want) {
		t.Fatalf("entries %+v, want %+v", facts, want)
	}
	if *got[2].Number != 41 || *got[3].State != "done" || got[3].Until != nil || *got[4].State != "waiting" || got[4].Until == nil {
		t.Errorf("entries %+v: want number 41, one delivery done and one that waits until a time", got[2:5])
	}
	if first := got[5]; *first.Attempts != 1 || *first.Status != 503 || *first.Class != "answer" || *first.DurationMs != 120 || first.Reason != nil {
		t.Errorf("the first attempt is %+v", first)
	}
	if end := got[7]; *end.Attempts != 2 || *end.State != "done" || end.Class != nil {
		t.Errorf("the end is %+v", end)
	}
	if got := read(s.message, uuid.Nil); len(got) != len(want)-1 {
		t.Errorf("%d entries without the report, want all but the number", len(got))
	}
	if got := read(uuid.NewString(), s.report); len(got) != 0 {
		t.Errorf("another message about the report has the entries %+v", got)
	}
}

// An endpoint without a delivery has the reason, as its filter is now. What is not known of
// the message stays general.
func TestStorySaysWhyAWebhookWasNotSent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	s := writeStory(t, pool)
	stories := postgres.NewStories(pool, "queue.report_created", "queue.webhooks")
	reasons := func(message string, report uuid.UUID) map[string]string {
		t.Helper()
		entries, err := stories.Entries(t.Context(), message, report)
		if err != nil {
			t.Fatal(err)
		}
		said := make(map[string]string)
		for _, e := range entries {
			if e.Reason != nil && e.Kind == story.DeliveryEnded && e.Delivery == nil && *e.State == "cancelled" {
				said[e.Place] = strings.TrimPrefix(*e.Reason, "not sent: ")
			}
		}
		return said
	}
	mustExec(t, pool, `update notifications set data = '{"category_id": 2, "private": true}' where message_id = $1`, s.message)
	want, general := make(map[string]string), make(map[string]string)
	for _, tt := range []struct{ columns, values, reason, general string }{
		{"created_at", "now()", "the endpoint was registered later", "the endpoint was registered later"},
		{"event_types", "'{report.vote.received}'", "the endpoint takes other events", "the endpoint takes other events"},
		{"event_types", "'{report.created}'", "the endpoint has no scope for reports that only the city sees", "the filter of the endpoint by event, category or area did not match"},
		{"category_ids, scopes", "'{1}', '{private}'", "the endpoint takes other categories", "the filter of the endpoint by event, category or area did not match"},
		{"area, scopes", "'{1,1,2,2}', '{private}'", "the filter of the endpoint by event, category or area did not match", "the filter of the endpoint by event, category or area did not match"},
		{"category_ids", "'{}'", "the endpoint has no scope for reports that only the city sees", "the report was hidden, or only the city sees it"},
	} {
		id := uuid.New()
		created := ""
		if tt.columns != "created_at" {
			created = ", created_at"
			tt.values += ", now() - interval '1 hour'"
		}
		mustExec(t, pool, `insert into webhook_endpoints (id, url, secret, `+tt.columns+created+`) values ($1, 'https://example.org', 'secret', `+tt.values+`)`, id)
		want[id.String()], general[id.String()] = tt.reason, tt.general
	}
	if got := reasons(s.message, s.report); !maps.Equal(got, want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
	if got := reasons(s.message, uuid.Nil); !maps.Equal(got, general) { // the kind is that of other deliveries
		t.Errorf("without the report %v, want %v", got, general)
	}
	mustExec(t, pool, `update processed_messages set processed_at = processed_at - interval '8 days'`)
	if got := reasons(s.message, s.report); len(got) != 0 {
		t.Errorf("of a message whose deliveries may be removed: %v", got)
	}
}

// Among many messages one is found by keys. The endpoints, which are a thousand at most, are
// read all.
func TestStoryIsFoundByKeys(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	s := writeStory(t, pool)
	for _, sql := range []string{
		`insert into processed_messages (consumer, message_id) select 'queue.webhooks', gen_random_uuid() from generate_series(1, 15000)`,
		`insert into message_starts (queue, message_id, starts) select 'queue.webhooks', gen_random_uuid(), 1 from generate_series(1, 5000)`,
		`insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
			select 'queue.webhooks', gen_random_uuid(), 'x', now(), '{}', '{}', '{}' from generate_series(1, 5000)`,
		`insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
			select 'queue.webhooks', gen_random_uuid(), 'x', '{}', '{}', '{}', 'permanent', 'x', 'x', now(), now() from generate_series(1, 5000)`,
		`insert into dead_letter_attempts (dead_letter_id, failed_at, retries, retry_reason, error_class, error) select id, failed_at, 0, '', 'x', 'x' from dead_letters`,
		`insert into webhook_endpoints (id, url, secret) select gen_random_uuid(), 'https://example.org', 'secret' from generate_series(1, 48)`,
		`insert into deliveries (channel, lane, target, message_id, kind, body)
			select 'webhook', e.id::text, e.id::text, gen_random_uuid(), 'x', '{}' from webhook_endpoints e, generate_series(1, 300)`,
		`insert into delivery_attempts (delivery_id, n, at, duration_ms, class) select id, 3, now(), 1, 'ok' from deliveries`,
		`insert into streams (name) select 'user:' || i from generate_series(1, 2000) i`,
		`insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at)
			select s.id, 100 + i, gen_random_uuid(), gen_random_uuid(), 'x', gen_random_uuid(), 1, '{}', now() from streams s, generate_series(1, 10) i`,
		`insert into reconciliation_manifests (consumer_group, epoch, number, starts_at, ends_at, state)
			select 'webhooks', 0, n, now(), now(), 'complete' from generate_series(1, 5000) n`,
		`analyze`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	watched, queries := pgtest.Watch(t, pool)
	entries, err := postgres.NewStories(watched, "queue.report_created", "queue.webhooks").Entries(t.Context(), s.message, s.report)
	if err != nil || len(entries) < 8 {
		t.Fatalf("%d entries, error %v; want 8 and more", len(entries), err)
	}
	const most = 400 // the key of deliveries is looked up for each of fifty endpoints
	for _, plan := range queries.Plans(t) {
		if plan.Blocks > most || len(plan.Sequential) > 1 || len(plan.Sequential) == 1 && plan.Sequential[0] != "webhook_endpoints" {
			t.Errorf("%d blocks are read, want at most %d; in sequence %q, want none but the endpoints:\n%s", plan.Blocks, most, plan.Sequential, plan.SQL)
		}
	}
}

var storyMessages = flag.Int("story-messages", 10_000, "how many messages BenchmarkStory has handled")

// Each message was handled in two queues, has a number in the officials' stream, and went
// to one endpoint: with -story-messages 2500000 the tables have ten million rows.
func BenchmarkStory(b *testing.B) {
	pool := pgtest.Notification(b)
	for _, sql := range []string{
		`create table asked as select gen_random_uuid() as message, gen_random_uuid() as report, n from generate_series(1, $1::int) n`,
		`insert into processed_messages (consumer, message_id, processed_at)
		select q, message::text, now() - n * interval '100 milliseconds' from asked, unnest(array['queue.report_created', 'queue.webhooks']) q`,
		`insert into streams (name, last_seq) values ('role:official', $1::int)`,
		`insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data)
		select s.id, n, gen_random_uuid(), message::text, 'report.created', report, 1, '{}' from streams s, asked where n <= $1::int`,
		`insert into webhook_endpoints (id, url, secret) select gen_random_uuid(), 'https://city.example/' || n, '' from generate_series(1, 5) n where $1::int > 0`,
		`insert into deliveries (channel, lane, target, message_id, kind, body, state, attempts, last_class, done_at)
		select 'webhook', target, target, message::text, 'report.created', '{}', 'done', 1, 'ok', now()
		from asked, (select min(id::text) as target from webhook_endpoints) one where n <= $1::int`,
	} {
		args := []any{*storyMessages}
		if !strings.Contains(sql, "$1") {
			args = nil
		}
		if _, err := pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := pool.Exec(b.Context(), `vacuum analyze`); err != nil {
		b.Fatal(err)
	}
	rows, err := pool.Query(b.Context(), `select message::text, report from asked order by random() limit 1000`)
	if err != nil {
		b.Fatal(err)
	}
	asked, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Message string
		Report  uuid.UUID
	}])
	if err != nil {
		b.Fatal(err)
	}
	stories := postgres.NewStories(pool, "queue.report_created", "queue.webhooks")
	var took []time.Duration
	for b.Loop() {
		one := asked[rand.IntN(len(asked))]
		began := time.Now()
		entries, err := stories.Entries(b.Context(), one.Message, one.Report)
		took = append(took, time.Since(began))
		if err != nil || len(entries) != 5 {
			b.Fatalf("%d entries (%v), want 5", len(entries), err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
