package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// Operators' acts on failed rows change them, and only them, and are audited.
func TestMending(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	var woken shards.Set
	store := outbox.NewStore(pool, func(shards shards.Set) { woken |= shards })
	pending := insert(t, pool, "pending", 0)
	retried, discarded := insert(t, pool, "failed", 5), insert(t, pool, "failed", 5)
	for range 3 {
		insert(t, pool, "failed", 5)
	}

	for _, tt := range []struct {
		name string
		err  error
		want fault.Kind
	}{
		{"retry a failed row", store.Retry(ctx, "op-1", retried), ""},
		{"retry it again", store.Retry(ctx, "op-1", retried), outbox.NotFailed},
		{"retry what is not there", store.Retry(ctx, "op-1", uuid.New()), fault.NotFound},
		{"discard a failed row", store.Discard(ctx, "op-2", discarded, "obsolete"), ""},
		{"discard it again", store.Discard(ctx, "op-2", discarded, "obsolete"), fault.NotFound},
		{"discard a pending row", store.Discard(ctx, "op-2", pending, "no"), outbox.NotFailed},
	} {
		if got := fault.KindOf(tt.err); got != tt.want || (tt.err == nil) != (tt.want == "") {
			t.Errorf("%s: kind %q, want %q (error: %v)", tt.name, got, tt.want, tt.err)
		}
	}
	shard := shards.Set(0).Add(7)
	if woken != shard {
		t.Errorf("a retry wakes the shards %b, want %b", woken, shard)
	}
	woken = 0
	for _, want := range []int64{3, 0} {
		if n, err := store.RetryAll(ctx, "op-3", "report.created"); err != nil || n != want {
			t.Errorf("RetryAll = %d, %v; want %d", n, err, want)
		}
	}
	if woken != shard {
		t.Errorf("the retry of all wakes the shards %b, want %b", woken, shard)
	}
	audit, err := store.Audit(ctx, 10)
	if err != nil || len(audit) != 5 {
		t.Fatalf("audit has %d lines (error %v), want 5: %+v", len(audit), err, audit)
	}
	if second := audit[3]; second.Action != "discard" || second.Actor != "op-2" || second.Reason != "obsolete" || second.MessageID != discarded {
		t.Errorf("audit line %+v, want the discard with its reason", second)
	}
	stats, err := store.Stats(ctx)
	if err != nil || stats.Pending != 5 || stats.Failed != 0 || stats.Delayed != 0 {
		t.Errorf("stats %+v (error %v), want 5 pending rows with all their attempts before them", stats, err)
	}
}

// As many as fail in a long outage are retried by short transactions.
func TestManyAreRetried(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	insert(t, pool, "failed", 5)
	const more = 1200
	if _, err := pool.Exec(ctx, `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, status, retry_count)
		select gen_random_uuid(), routing_key, payload, report_id, report_version, shard, status, retry_count
		from outbox_messages, generate_series(1, $1) limit $1`, more); err != nil {
		t.Fatal(err)
	}
	if n, err := store.RetryAll(ctx, "op", "report.created"); err != nil || n != more+1 {
		t.Fatalf("RetryAll = %d, %v; want %d", n, err, more+1)
	}
	var largest int
	err := pool.QueryRow(ctx, `select max(n) from (select count(*) as n from outbox_messages group by xmin) t`).Scan(&largest)
	if err != nil || largest > 500 {
		t.Errorf("one transaction retried %d rows (error %v), want 500 at most", largest, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	var ids []uuid.UUID
	for range 5 {
		ids = append(ids, insert(t, pool, "failed", 5))
	}
	insert(t, pool, "pending", 0)

	var got []uuid.UUID
	filter := outbox.Filter{Status: outbox.Failed, Limit: 2}
	for {
		page, err := store.List(ctx, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			got = append(got, m.ID)
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("pages hold %v, want %v", got, ids)
	}
	if page, err := store.List(ctx, outbox.Filter{Status: outbox.Failed, RoutingKey: "report.vote.received", Limit: 2}); err != nil || len(page.Messages) != 0 {
		t.Errorf("another kind: %d rows (error %v), want none", len(page.Messages), err)
	}
	if _, err := store.List(ctx, outbox.Filter{Status: outbox.Failed, Cursor: "?", Limit: 2}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("malformed cursor: %v, want it refused", err)
	}
}

// Among many published messages those of a report or a trace are looked for among the
// latest, by an index; one that is named is found however old it is.
func TestListOfManyReadsTheLatest(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	old, recent := write(t, pool, `status = 'published', published_at = now() - interval '2 days'`), write(t, pool, `status = 'published', published_at = now()`)
	for _, sql := range []string{
		`insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard)
		 select gen_random_uuid(), 'report.created', '{}', 'published', now() - interval '1 day' + i * interval '1 second', gen_random_uuid(), 1, 7
		 from generate_series(1, 60000) i`,
		`analyze`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	watched, queries := pgtest.Watch(t, pool)
	store := outbox.NewStore(watched, func(shards.Set) {})
	for name, tt := range map[string]struct {
		filter outbox.Filter
		want   uuid.UUID
	}{
		"a trace":      {outbox.Filter{TraceID: trace}, recent},
		"an old id":    {outbox.Filter{ID: old}, old},
		"an id, newer": {outbox.Filter{ID: recent, TraceID: trace}, recent},
	} {
		tt.filter.Status, tt.filter.Limit = outbox.Published, 20
		page, err := store.List(t.Context(), tt.filter)
		if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != tt.want {
			t.Errorf("%s: %+v, error %v; want %s", name, page.Messages, err, tt.want)
		}
	}
	for _, plan := range queries.Plans(t) {
		if len(plan.Sequential) > 0 {
			t.Errorf("read in sequence: %q:\n%s", plan.Sequential, plan.SQL)
		}
	}
}

func TestStatsByShard(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	insert(t, pool, "pending", 1)
	insert(t, pool, "failed", 5)
	if _, err := pool.Exec(t.Context(), `update outbox_messages set created_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	stats, err := store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(outbox.NewCollector(store)); n != 3*16+1 {
		t.Errorf("collector shows %d metrics, want three per shard and the age", n)
	}
	shard := stats.Shards[7]
	if len(stats.Shards) != 16 || shard.Pending != 1 || shard.Delayed != 1 || shard.Failed != 1 || shard.OldestAge.Hours() < 0.9 {
		t.Errorf("shard 7 of %d: %+v, want a delayed and a failed row, an hour old", len(stats.Shards), shard)
	}
}

// A count that took long is used again for longer: charts and metrics ask by the
// clock.
func TestRecent(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	insert(t, pool, "pending", 0)
	wantRecent(t, store, 1)
	insert(t, pool, "pending", 0)
	wantRecent(t, store, 2)

	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `lock table relay_shards`); err != nil {
		t.Fatal(err)
	}
	insert(t, pool, "pending", 0)
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		wantRecent(t, store, 3)
	}()
	for waiting := false; !waiting; <-time.After(time.Second) {
		err := tx.QueryRow(ctx, `select exists (select from pg_locks where relation = 'relay_shards'::regclass and not granted)`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	<-slow
	insert(t, pool, "pending", 0)
	if stats, err := store.Recent(ctx); err != nil || stats.Pending != 3 {
		t.Errorf("%d rows (error %v) right after a count that took a second, want the 3 that it found", stats.Pending, err)
	}
	if stats, err := store.Stats(ctx); err != nil || stats.Pending != 4 {
		t.Errorf("Stats counts %d rows (error %v), want all 4", stats.Pending, err)
	}
}

// wantRecent waits until the last count is of that many rows.
func wantRecent(t *testing.T, store *outbox.Store, pending int64) {
	t.Helper()
	eventually.NothingMissing(t, "the count", func() string {
		stats, err := store.Recent(t.Context())
		if err == nil && stats.Pending == pending {
			return ""
		}
		return fmt.Sprintf("%d pending rows (error %v), want %d", stats.Pending, err, pending)
	})
}

// insert writes a row of shard 7 in the given state.
func insert(t *testing.T, pool *pgxpool.Pool, status string, attempts int) uuid.UUID {
	t.Helper()
	id := uuid.New()
	_, err := pool.Exec(t.Context(), `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, status, retry_count)
		values ($1, 'report.created', '{}', $1, 1, 7, $2, $3)`, id, status, attempts)
	if err != nil {
		t.Fatalf("insert: %v", err)
	}
	return id
}
