package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// What was published since a time is published again, under its ids and in its
// order; what was published before, failed, or waits stays as it is.
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
	var told int64
	store := outbox.NewStore(pool, func(s shards.Set) { woken |= s })
	if err := store.Republish(ctx, time.Now().Add(-time.Hour), func(n int64) { told = n }); err != nil {
		t.Fatal(err)
	}
	if told != 1234 || woken != shards.Set(0).Add(7) {
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
