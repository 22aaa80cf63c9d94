package postgres_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A vote writes no index of the reports: the new version of the row is on the page of the
// old one (a heap-only tuple), also if the page was filled by filings.
func TestVotesWriteNoIndexOfReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const every = 10 // about one a page
	var filed []report.Filing
	for i := range 20 * every {
		d := draft(report.Public)
		d.Description = strings.Repeat("dark ", 1+i%40)
		filed = append(filed, f.file(ann, d))
	}
	votes := 0
	for i := 0; i < len(filed); i += every {
		if _, err := f.Vote(t.Context(), filed[i].ID, bob.ID, report.Upvote); err != nil {
			t.Fatalf("Vote: %v", err)
		}
		votes++
	}
	var updates, heapOnly int
	eventually.True(t, "statistics of all votes", func() bool { // sessions report them within 10 s
		err := f.pool.QueryRow(t.Context(), `select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'reports'`).Scan(&updates, &heapOnly)
		return err == nil && updates >= votes
	})
	if updates != votes || heapOnly < votes-1 {
		t.Errorf("%d votes: %d updates, of which %d wrote no index; want all to", votes, updates, heapOnly)
	}
}
