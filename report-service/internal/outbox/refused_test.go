package outbox_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// Behind a refused row wait the later pending rows of its report, refused ones among
// them; not those of other reports, nor what is out already.
func TestRowsBehindARefusedOne(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	insertOf(t, pool, other, "pending", 0, time.Hour)
	insertOf(t, pool, waits, "published", 0, 50*time.Minute)
	insertOf(t, pool, waits, "failed", 5, 45*time.Minute)
	insertOf(t, pool, waits, "pending", 0, 40*time.Minute) // before it
	first := insertOf(t, pool, waits, "pending", 2, 30*time.Minute)
	insertOf(t, pool, other, "pending", 0, 25*time.Minute)
	insertOf(t, pool, waits, "pending", 0, 20*time.Minute)
	second := insertOf(t, pool, waits, "pending", 1, 15*time.Minute)
	insertOf(t, pool, waits, "pending", 0, 10*time.Minute)
	alone := insertOf(t, pool, third, "pending", 1, 5*time.Minute)

	refusals, err := store.Refused(t.Context(), 100)
	if err != nil || len(refusals) != 3 {
		t.Fatalf("%d refused rows (error %v), want 3", len(refusals), err)
	}
	for i, want := range []struct {
		id     uuid.UUID
		behind int64
		since  time.Duration // ago
	}{{first, 3, 20 * time.Minute}, {second, 1, 10 * time.Minute}, {alone, 0, 0}} {
		got := refusals[i]
		if got.Message.ID != want.id || got.Behind != want.behind || (got.BehindSince == nil) != (want.since == 0) {
			t.Errorf("refusal %d is %+v, want %v with %d behind it", i, got, want.id, want.behind)
		} else if want.since > 0 {
			if ago := time.Since(*got.BehindSince); ago < want.since || ago > want.since+time.Minute {
				t.Errorf("refusal %d: the oldest behind it waits for %v, want %v", i, ago, want.since)
			}
		}
	}
	if refusals, err = store.Refused(t.Context(), 1); err != nil || len(refusals) != 1 || refusals[0].Message.ID != first {
		t.Errorf("the first of them: %+v (error %v)", refusals, err)
	}
}

// In a long outage of the broker the rows behind refused ones are counted within the
// time of a request.
func TestRefusedRowsOfALargeOutbox(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	store := outbox.NewStore(pool, func(shards.Set) {})
	insertMany(t, pool, 60_000)
	began := time.Now()
	refusals, err := store.Refused(t.Context(), 100)
	took := time.Since(began)
	if err != nil || len(refusals) != 100 {
		t.Fatalf("%d refused rows (error %v), want 100", len(refusals), err)
	}
	if took > 4*time.Second {
		t.Errorf("it took %v with 60,000 pending rows", took)
	}
	t.Logf("100 refused rows among 60,000 pending ones: %v", took)
}

var waits, other, third = uuid.New(), uuid.New(), uuid.New()

// insertOf writes a row of a report, in the shard of all.
func insertOf(t *testing.T, pool *pgxpool.Pool, report uuid.UUID, status string, attempts int, age time.Duration) uuid.UUID {
	t.Helper()
	id := uuid.New()
	_, err := pool.Exec(t.Context(), `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, status, retry_count, created_at)
		values ($1, 'report.created', '{}', $2, 1, 7, $3, $4, now() - $5::interval)`, id, report, status, attempts, age)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// insertMany writes pending rows of 1,000 reports, one in a hundred of which was refused.
func insertMany(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, status, retry_count)
		select gen_random_uuid(), 'report.created', '{}', md5((n % 1000)::text)::uuid, 1, n % 16, 'pending', case when n % 100 = 0 then 1 else 0 end
		from generate_series(1, $1) n`, n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `analyze outbox_messages`); err != nil {
		t.Fatal(err)
	}
}
