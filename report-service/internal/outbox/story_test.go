package outbox_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// write writes a message that was accepted a minute ago and is in the state that set says.
func write(t *testing.T, pool *pgxpool.Pool, set string) (id uuid.UUID) {
	t.Helper()
	id = uuid.New()
	for _, sql := range []string{
		`insert into outbox_messages (id, routing_key, payload, created_at, report_id, report_version, shard, headers)
		 values ($1, 'report.created', '{}', now() - interval '1 minute', gen_random_uuid(), 1, 7, '{"traceparent": "00-` + trace + `-00f067aa0ba902b7-01"}')`,
		`update outbox_messages set ` + set + ` where id = $1`,
	} {
		if _, err := pool.Exec(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// The story says how far a message is, what it waits for, and what operators did to it.
func TestStory(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	retried := write(t, pool, `status = 'failed', retry_count = 5, last_error = 'NO_ROUTE'`)
	if err := store.Retry(t.Context(), "otto", retried); err != nil {
		t.Fatal(err)
	}
	gone := write(t, pool, `status = 'failed', retry_count = 5, last_error = 'NO_ROUTE'`)
	if err := store.Discard(t.Context(), "otto", gone, "obsolete"); err != nil {
		t.Fatal(err)
	}
	again := write(t, pool, `status = 'published', published_at = created_at + interval '1500 milliseconds'`)
	if _, err := store.RepublishChosen(t.Context(), "otto", []uuid.UUID{again}, "lost"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `update outbox_messages set status = 'published', published_at = now() + interval '1 second' where id = $1`, again); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		id    uuid.UUID
		known bool // its row is there
		want  []story.Kind
	}{
		"pending":   {write(t, pool, `status = 'pending'`), true, []story.Kind{story.Accepted}},
		"refused":   {write(t, pool, `retry_count = 2, last_error = 'NO_ROUTE', next_attempt_at = now() + interval '2 seconds'`), true, []story.Kind{story.Accepted, story.PublishDue}},
		"published": {write(t, pool, `status = 'published', published_at = created_at + interval '1500 milliseconds'`), true, []story.Kind{story.Accepted, story.Published}},
		"failed":    {write(t, pool, `status = 'failed', retry_count = 5, last_error = 'NO_ROUTE'`), true, []story.Kind{story.Accepted}},
		"again":     {again, true, []story.Kind{story.Accepted, story.Published, story.Requeued, story.Published}},
		"retried":   {retried, true, []story.Kind{story.Accepted, story.Requeued}},
		"discarded": {gone, false, []story.Kind{story.Withdrawn}},
		"unknown":   {uuid.New(), false, nil},
	} {
		got, err := store.Story(t.Context(), tt.id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		story.Sort(got.Entries)
		var kinds []story.Kind
		for _, e := range got.Entries {
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, tt.want) || (got.Message != nil) != tt.known || tt.known && (got.Message.ID != tt.id || got.TraceID != trace) {
			t.Errorf("%s: %q, message %+v, trace %q; want %q", name, kinds, got.Message, got.TraceID, tt.want)
		}
		for _, e := range got.Entries {
			switch {
			case e.Place != "outbox",
				e.Kind == story.Withdrawn && (e.Reason == nil || *e.Reason != "obsolete"),
				e.Kind == story.PublishDue && (*e.Reason != "NO_ROUTE" || *e.Attempts != 2),
				e.Kind == story.Published && (e.DurationMs != nil && *e.DurationMs != 1500 || e.Attempts != nil && *e.Attempts != 1):
				t.Errorf("%s: entry %+v", name, e)
			}
		}
	}
}

// Among many messages and acts one is found by keys.
func TestStoryIsFoundByKeys(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	id := write(t, pool, `status = 'published', published_at = now()`)
	for _, sql := range []string{
		`insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard)
		 select gen_random_uuid(), 'report.created', '{}', gen_random_uuid(), 1, 7 from generate_series(1, 50000)`,
		`insert into outbox_audit (actor, action, message_id, routing_key)
		 select 'otto', 'retry', id, routing_key from outbox_messages`,
		`delete from outbox_messages where id in (select id from outbox_messages where status = 'pending' limit 10000)`, // by hand
		`analyze`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	watched, queries := pgtest.Watch(t, pool)
	if _, err := outbox.NewStore(watched, func(shards.Set) {}).Story(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	const most = 200
	plans := queries.Plans(t)
	if len(plans) != 2 {
		t.Errorf("%d queries, want 2", len(plans))
	}
	for _, plan := range plans {
		if len(plan.Sequential) > 0 || plan.Blocks > most {
			t.Errorf("%d blocks are read, want at most %d; in sequence %q, want none:\n%s", plan.Blocks, most, plan.Sequential, plan.SQL)
		}
	}
}
