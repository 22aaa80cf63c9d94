package relay

import (
	"encoding/json"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A read from the watermark costs the same however much was published beside a
// transaction that stays open, which keeps vacuum from removing those rows from
// the index. It is counted in pages, which the load of the machine does not
// change. The planner estimates such indexes wrong, and its choice between them
// is chance: without sorting and hashing it chooses the worst.
func TestReadBesideOpenTransaction(t *testing.T) {
	t.Parallel()
	const published, maxPages = 50_000, 200
	ctx, pool := t.Context(), pgtest.Report(t)
	open, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(ctx)
	if _, err := open.Exec(ctx, `select pg_current_xact_id()`); err != nil { // gives it an id
		t.Fatal(err)
	}
	_, err = pool.Exec(ctx, `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard)
		select gen_random_uuid(), 'report.created', '{}', gen_random_uuid(), 1, n % 16 from generate_series(1, $1::int) n`, published)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`update outbox_messages set status = 'published', published_at = now()`,
		`vacuum analyze outbox_messages`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	var top int64
	if err := pool.QueryRow(ctx, `select max(seq) from outbox_messages`).Scan(&top); err != nil {
		t.Fatal(err)
	}

	var numbers []int16
	var above []int64
	for shard := range int16(shards.Count) {
		numbers, above = append(numbers, shard), append(above, top)
	}
	var explained []byte
	reading, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Rollback(ctx)
	if _, err := reading.Exec(ctx, `set local enable_sort = off; set local enable_hashagg = off`); err != nil {
		t.Fatal(err)
	}
	err = reading.QueryRow(ctx, "explain (analyze, buffers, format json) "+readSQL, numbers, above, []int64{}, []string{}, readSize/shards.Count).Scan(&explained)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(explained, &plans); err != nil {
		t.Fatal(err)
	}
	pages := plans[0].Plan.Hit + plans[0].Plan.Read
	t.Logf("a read visits %d pages beside %d published rows", pages, published)
	if pages > maxPages {
		t.Errorf("a read visits %d pages, want at most %d:\n%s", pages, maxPages, explained)
	}
}
