package story_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/story"
)

const (
	votes    = "queue.vote_received"
	webhooks = "queue.webhooks"
)

// start is when the first message was accepted.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// fill writes a message that was parked in one queue, and that failed, was replayed, failed
// again and had its effect after another replay in the other.
func fill(t *testing.T, pool *pgxpool.Pool, message string) (letter int64, first, second uuid.UUID) {
	t.Helper()
	first, second = uuid.New(), uuid.New()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, replay := range []uuid.UUID{first, second} {
		exec(`insert into replays (id, selection, state, total, rate_per_s, canary) values ($1, '{}', 'done', 1, 0, 0)`, replay)
	}
	err := pool.QueryRow(t.Context(), `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, deaths,
		  first_failed_at, failed_at, state, closed_at, replay_id, sent_at)
		values ($1, $2, 'report.vote.received', '{}', '{}', '{}', 'transient', 'SQLSTATE 55P03', 'SQLSTATE 55P03', 2, $3, $4, 'resolved', $5, $6, $7)
		returning id`, votes, message, at(1), at(80), at(101), second, at(100)).Scan(&letter)
	if err != nil {
		t.Fatal(err)
	}
	exec(`insert into dead_letter_attempts (dead_letter_id, failed_at, retries, retry_reason, error_class, error, replay_id)
		values ($1, $2, 3, 'transient: busy', 'transient', 'SQLSTATE 55P03', null), ($1, $3, 0, '', 'permanent', 'REPORT_TITLE', $4)`,
		letter, at(40), at(80), first)
	exec(`insert into processed_messages (consumer, message_id, processed_at) values ($1, $2, $3)`, votes, message, at(101))
	exec(`insert into message_starts (queue, message_id, starts, started_at) values ($1, $2, 2, $3), ($4, $2, 0, $3)`, webhooks, message, at(2), votes)
	exec(`insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers, parked_at)
		values ($1, $2, 'report.vote.received', $3, '{}', '{}', '{}', $4)`, webhooks, message, at(200), at(3))
	exec(`insert into reconciliation_manifests (consumer_group, epoch, number, starts_at, ends_at, received_at, state, check_at, missing)
		select 'notifications', 0, count(*) + 1, $1, $1, $1, 'missing', $1, array[$2::uuid] from reconciliation_manifests`, at(300), message)
	return letter, first, second
}

// The story has everything that is known of a message, in order, with its facts.
func TestEntries(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	message := uuid.NewString()
	letter, first, second := fill(t, pool, message)
	fill(t, pool, uuid.NewString()) // of which nothing is shown
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	want := []story.Entry{
		{At: at(1), Kind: story.FirstFailed, Place: votes, DeadLetter: &letter},
		{At: at(2), Kind: story.Restarted, Place: webhooks, Attempts: new(int32(2))},
		{At: at(3), Kind: story.Parked, Place: webhooks, Until: new(at(200))},
		{At: at(40), Kind: story.DeadLettered, Place: votes, Attempts: new(int32(4)), Class: new("transient"), Reason: new("SQLSTATE 55P03"), DeadLetter: &letter},
		{At: at(80), Kind: story.DeadLettered, Place: votes, Attempts: new(int32(1)), Class: new("permanent"), Reason: new("REPORT_TITLE"), DeadLetter: &letter, Replay: &first},
		{At: at(100), Kind: story.Replayed, Place: votes, DeadLetter: &letter, Replay: &second},
		{At: at(101), Kind: story.Handled, Place: votes},
		{At: at(101), Kind: story.Resolved, Place: votes, DeadLetter: &letter},
		{At: at(300), Kind: story.NotFound, Place: "notifications", Reason: new("missing")},
	}
	got, err := story.NewStore(pool, votes, webhooks).Entries(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("Entries:\n%s\nwant\n%s", text(t, got), text(t, want))
	}
	for queue, want := range map[string]int{votes: 7, webhooks: 3, "queue.status_updates": 1} {
		got, err := story.NewStore(pool, queue).Entries(t.Context(), message)
		if err != nil || len(got) != want {
			t.Errorf("Entries of %s: %d, error %v; want %d", queue, len(got), err, want)
		}
	}
}

// Among many messages one is found by keys: no table is read from one end to the other.
func TestEntriesAreFoundByKeys(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	message := uuid.NewString()
	fill(t, pool, message)
	crowd(t, pool)
	watched, queries := pgtest.Watch(t, pool)
	queues := []string{votes, webhooks}
	for i := range 10 {
		queues = append(queues, "queue.other"+string(rune('a'+i)))
	}
	if entries, err := story.NewStore(watched, queues...).Entries(t.Context(), message); err != nil || len(entries) != 9 {
		t.Fatalf("Entries: %d, error %v; want 9", len(entries), err)
	}
	const most = 220 // four tables, each by its key in twelve queues
	for _, plan := range queries.Plans(t) {
		if len(plan.Sequential) > 0 || plan.Blocks > most {
			t.Errorf("%d blocks are read, want at most %d; in sequence %q, want none:\n%s", plan.Blocks, most, plan.Sequential, plan.SQL)
		}
	}
}

// crowd fills the tables with other messages.
func crowd(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		`insert into processed_messages (consumer, message_id) select 'queue.vote_received', gen_random_uuid() from generate_series(1, 15000)`,
		`insert into processed_messages (consumer, message_id) select 'queue.webhooks', gen_random_uuid() from generate_series(1, 15000)`,
		`insert into message_starts (queue, message_id, starts) select 'queue.webhooks', gen_random_uuid(), 1 from generate_series(1, 8000)`,
		`insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
			select 'queue.vote_received', gen_random_uuid(), 'report.vote.received', now(), '{}', '{}', '{}' from generate_series(1, 8000)`,
		`insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
			select 'queue.vote_received', gen_random_uuid(), 'report.vote.received', '{}', '{}', '{}', 'permanent', 'x', 'x', now(), now() from generate_series(1, 8000)`,
		`insert into dead_letter_attempts (dead_letter_id, failed_at, retries, retry_reason, error_class, error)
			select id, failed_at, 0, '', error_class, error from dead_letters where error = 'x'`,
		`insert into reconciliation_manifests (consumer_group, epoch, number, starts_at, ends_at, state)
			select 'webhooks', 0, n, now(), now(), 'complete' from generate_series(10, 8000) n`,
		`analyze`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// Every kind has a place in the order, and only one.
func TestSort(t *testing.T) {
	t.Parallel()
	var entries []story.Entry
	for _, kind := range slices.Backward(story.Kinds()) {
		entries = append(entries, story.Entry{At: start, Kind: kind})
	}
	entries = append(entries, story.Entry{At: start.Add(-time.Second), Kind: story.Resolved})
	story.Sort(entries)
	if entries[0].Kind != story.Resolved {
		t.Errorf("%s is first, want what was a second before", entries[0].Kind)
	}
	for i, kind := range story.Kinds() {
		if got := entries[i+1].Kind; got != kind {
			t.Errorf("%s at place %d, want %s", got, i+1, kind)
		}
	}
}
