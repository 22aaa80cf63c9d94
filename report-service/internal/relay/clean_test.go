package relay_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// Published rows go when their retention is over, judged by when they were
// published; failed ones stay. All fit into one batch, so that one look tells.
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
	waitFor(t, "old rows deleted", func() bool { return countRows(t, pool, "published") <= 1000 })
	if published, failed := countRows(t, pool, "published"), countRows(t, pool, "failed"); published != 1000 || failed != 1000 {
		t.Errorf("%d published and %d failed rows are left, want 1000 each", published, failed)
	}
}
