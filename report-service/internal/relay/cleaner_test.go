package relay_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Published rows go when their retention is over, judged by when they were
// published; failed ones stay. All fit into one batch.
func TestRetention(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	insertMany(t, pool, newRows(1000, 3))
	_, err := pool.Exec(t.Context(), `
		update outbox_messages set created_at = now() - interval '30 days', retry_count = 5,
			status = case when report_version = 1 then 'failed' else 'published' end,
			published_at = case report_version when 1 then null
				when 2 then now() - interval '71 hours' else now() - interval '73 hours' end`)
	if err != nil {
		t.Fatal(err)
	}
	start(t, pool, url)
	eventually.True(t, "old rows deleted", func() bool { return countRows(t, pool, "published") <= 1000 })
	if published, failed := countRows(t, pool, "published"), countRows(t, pool, "failed"); published != 1000 || failed != 1000 {
		t.Errorf("%d published and %d failed rows are left, want 1000 each", published, failed)
	}
}

// Batches that take too long are halved until they fit, and grow again when
// the cause is gone. Here another transaction locks the row that comes first.
func TestCleaningGivesWay(t *testing.T) {
	t.Parallel()
	asked := new(statements)
	pool, url := traced(t, pgtest.Report(t), asked), rabbittest.Vhost(t)
	rows := newRows(3000, 1)
	insertMany(t, pool, rows)
	_, err := pool.Exec(t.Context(), `
		update outbox_messages set status = 'published',
			published_at = now() - case id when $1 then interval '100 hours' else interval '90 hours' end`, rows[0].id)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from outbox_messages where id = $1 for update`, rows[0].id)
	}
	if err != nil {
		t.Fatal(err)
	}
	batches := func() (sizes []int) {
		for _, s := range asked.like("delete from outbox_messages") {
			sizes = append(sizes, s.args[1].(int))
		}
		return sizes
	}
	start(t, pool, url)
	eventually.True(t, "two batches that took too long", func() bool { return len(batches()) >= 3 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "all deleted", func() bool { return countRows(t, pool, "published") == 0 })

	sizes := batches()
	t.Logf("batches of %v", sizes)
	grown := false
	for i, size := range sizes[1:] {
		before := sizes[i]
		grown = grown || size > before
		if size != before/2 && size != before+before/4 {
			t.Errorf("a batch of %d follows one of %d, want half of it or a quarter more", size, before)
		}
	}
	if sizes[1] != sizes[0]/2 || sizes[2] != sizes[0]/4 || !grown {
		t.Errorf("batches of %v, want them halved twice, and to grow later", sizes)
	}
}
