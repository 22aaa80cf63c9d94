package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
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

// Rows that a broker has lost go before pending ones: they keep their place.
func TestPutBack(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	for n, status := range []string{"published", "pending", "published", "failed"} {
		_, err := pool.Exec(ctx, `
			insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard, retry_count, last_error)
			values (gen_random_uuid(), 'report.created', '{}', $1, case $1 when 'published' then now() - interval '1 hour' end,
				gen_random_uuid(), $2, 7, 1, 'refused')`, status, n+1)
		if err != nil {
			t.Fatal(err)
		}
	}
	var told int64
	err := outbox.NewStore(pool, func(shards.Set) {}).PutBack(ctx, func(done, _ int64) { told = done })
	if err != nil || told != 2 {
		t.Fatalf("%d put back (error %v), want 2", told, err)
	}
	rows, err := pool.Query(ctx, `
		select report_version, retry_count, last_error is null from outbox_messages where status = 'pending' and published_at is null order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	type state struct {
		Version int64
		Retries int
		Clean   bool
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[state])
	if want := []state{{1, 0, true}, {2, 1, false}, {3, 0, true}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("pending are %v (error %v), want %v", got, err, want)
	}
}
