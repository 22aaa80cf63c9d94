package relay_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A row that is marked as published stays on its page, even if all rows of the page are
// marked at once: the log has what differs, instead of the whole row.
func TestMarksStayOnTheirPage(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	rows := newRows(400, 1)
	for i := range rows {
		title := strings.Repeat("x", 100+i) // rows of 500 to 900 bytes
		rows[i].payload = strings.Replace(rows[i].payload, "{", `{"report_title": "`+title+`", "recipient": "`+strings.Repeat("y", 200)+`", `, 1)
	}
	insertMany(t, pool, rows)
	before := pages(t, pool)

	start(t, pool, url)
	waitEmpty(t, pool)
	moved := 0
	for id, page := range pages(t, pool) {
		if page != before[id] {
			moved++
		}
	}
	if limit := len(rows) / 50; moved > limit {
		t.Errorf("%d of %d rows are on another page after they were published, want at most %d", moved, len(rows), limit)
	}
}

// pages returns on which page each row is.
func pages(t *testing.T, pool *pgxpool.Pool) map[uuid.UUID]int64 {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select id, (ctid::text::point)[0]::bigint from outbox_messages`)
	if err != nil {
		t.Fatalf("read pages: %v", err)
	}
	found := make(map[uuid.UUID]int64)
	var id uuid.UUID
	var page int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &page}, func() error { found[id] = page; return nil }); err != nil {
		t.Fatalf("read pages: %v", err)
	}
	return found
}
