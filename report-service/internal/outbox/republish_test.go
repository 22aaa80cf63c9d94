package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// Rows that were published since a time are published again, under their ids and in
// their order; those published before, failed or pending stay as they are.
func TestRepublish(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	insertMany := func(status, published string) {
		t.Helper()
		_, err := pool.Exec(ctx, `
			insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard, headers)
			select gen_random_uuid(), 'report.created', jsonb_build_object('n', n), $1, `+published+`, gen_random_uuid(), n, 7, '{"a": "b"}'
			from generate_series(1, 1234) n`, status)
		if err != nil {
			t.Fatal(err)
		}
	}
	insertMany("published", "now() - interval '2 hours'")
	insertMany("published", "now() - interval '30 minutes' + n / 10 * interval '1 second'")
	insertMany("pending", "null")
	insertMany("failed", "null")
	var woken shards.Set
	var told, announced int64
	store := outbox.NewStore(pool, func(s shards.Set) { woken |= s })
	window := outbox.Window{Since: time.Now().Add(-time.Hour)}
	if err := store.Republish(ctx, window, func(done, total int64) { told, announced = done, total }); err != nil {
		t.Fatal(err)
	}
	if told != 1234 || announced != 1234 || woken != shards.Set(0).Add(7) {
		t.Errorf("%d put back, shards %b woken; want 1234 and shard 7", told, woken)
	}
	rows, err := pool.Query(ctx, `select report_version from outbox_messages where status = 'pending' and headers ->> 'a' = 'b' order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(versions) != 2*1234 {
		t.Fatalf("%d messages wait (error %v), want %d", len(versions), err, 2*1234)
	}
	for i, v := range versions { // those that waited, then those that were put back
		if v != int64(i%1234)+1 {
			t.Fatalf("at place %d stands number %d", i, v)
		}
	}
	var published int
	if err := pool.QueryRow(ctx, `select count(*) from outbox_messages where status = 'published'`).Scan(&published); err != nil || published != 1234 {
		t.Errorf("%d are still published (error %v), want the 1234 of before", published, err)
	}
}

// Messages that were chosen are published again, behind all others, each once and with an
// audit row; of the others the operator gets the number.
func TestRepublishChosen(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	var woken shards.Set
	store := outbox.NewStore(pool, func(s shards.Set) { woken |= s })
	chosen := write(t, pool, `status = 'published', published_at = now() - interval '2 hours'`)
	other := write(t, pool, `status = 'published', published_at = now() - interval '2 hours'`)
	old := write(t, pool, `status = 'published', published_at = now() - interval '40 days'`)
	pending, failed := write(t, pool, `status = 'pending'`), write(t, pool, `status = 'failed', retry_count = 5`)
	ids := []uuid.UUID{chosen, chosen, old, pending, failed, uuid.New()}

	done, err := store.RepublishChosen(ctx, "otto", ids, "lost")
	if want := (outbox.Republished{Pending: 1, Unpublished: 2, Gone: 2}); err != nil || done != want {
		t.Fatalf("RepublishChosen = %+v, %v; want %+v", done, err, want)
	}
	if woken != shards.Set(0).Add(7) {
		t.Errorf("shards %b are woken, want 7", woken)
	}
	var last uuid.UUID
	var waiting int
	err = pool.QueryRow(ctx, `select count(*), (array_agg(id order by seq desc))[1] from outbox_messages where status = 'pending'`).Scan(&waiting, &last)
	if err != nil || waiting != 2 || last != chosen {
		t.Errorf("%d wait, %v the last (%v); want 2, and %v", waiting, last, err, chosen)
	}
	acts, err := store.Audit(ctx, 10)
	if err != nil || len(acts) != 1 || acts[0].Action != "republish" || acts[0].Actor != "otto" || acts[0].MessageID != chosen || acts[0].Reason != "lost" {
		t.Errorf("audit is %+v (%v), want the one act", acts, err)
	}
	if told, err := store.Story(ctx, chosen); err != nil || told.Entries[len(told.Entries)-1].Kind != story.Requeued {
		t.Errorf("the story is %+v (%v), want the act at its end", told.Entries, err)
	}
	if told, err := store.Story(ctx, other); err != nil || len(told.Entries) != 2 {
		t.Errorf("the story of another is %+v (%v)", told.Entries, err)
	}
	if done, err = store.RepublishChosen(ctx, "otto", ids[:1], "lost"); err != nil || done.Unpublished != 1 {
		t.Errorf("again: %+v, %v; want one that waits", done, err)
	}
}

// A window has an end, and does not reach back further than consumers remember
// what they had.
func TestRepublishWithinItsWindow(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	for _, ago := range []string{"40 days", "3 hours", "1 hour"} {
		_, err := pool.Exec(ctx, `
			insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard)
			values (gen_random_uuid(), 'report.created', '{}', 'published', now() - $1::interval, gen_random_uuid(), 1, 7)`, ago)
		if err != nil {
			t.Fatal(err)
		}
	}
	store := outbox.NewStore(pool, func(shards.Set) {})
	republish := func(w outbox.Window) (n int64) {
		t.Helper()
		if err := store.Republish(ctx, w, func(done, _ int64) { n = done }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := republish(outbox.Window{Since: time.Now().Add(-4 * time.Hour), Until: time.Now().Add(-2 * time.Hour)}); n != 1 {
		t.Errorf("from four to two hours ago: %d messages, want 1", n)
	}
	if n := republish(outbox.Window{}); n != 1 {
		t.Errorf("everything: %d messages, want the one of an hour ago: consumers have forgotten that of 40 days ago", n)
	}
}

// The latest of the rows that were published before a time go behind the pending ones,
// in their order; a second portion has those before them.
func TestRepublishLatest(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	for n, ago := range []string{"40 days", "4 hours", "3 hours", "2 hours", "1 hour", ""} {
		_, err := pool.Exec(ctx, `
			insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard)
			values (gen_random_uuid(), 'report.created', '{}', case $1 when '' then 'pending' else 'published' end,
				now() - nullif($1, '')::interval, gen_random_uuid(), $2, 7)`, ago, n)
		if err != nil {
			t.Fatal(err)
		}
	}
	var woken shards.Set
	store := outbox.NewStore(pool, func(s shards.Set) { woken |= s })
	before := time.Now().Add(-90 * time.Minute)
	for _, want := range []int{2, 1, 0} {
		ids, more, err := store.RepublishLatest(ctx, before, 2)
		if err != nil || len(ids) != want || more != (want > 0) {
			t.Fatalf("%d are pending again (more: %v, error %v), want %d", len(ids), more, err, want)
		}
		if n, err := store.Pending(ctx, ids); err != nil || n != want {
			t.Errorf("%d of them are pending (error %v), want all", n, err)
		}
	}
	rows, err := pool.Query(ctx, `select report_version from outbox_messages where status = 'pending' order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if want := []int64{5, 2, 3, 1}; err != nil || !slices.Equal(got, want) || woken != shards.Set(0).Add(7) {
		t.Errorf("pending are %v (error %v), shards %b woken; want %v, and shard 7", got, err, woken, want)
	}
}
