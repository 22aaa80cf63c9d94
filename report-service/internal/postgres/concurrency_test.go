package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A thousand mixed votes on five reports through two replicas, some changed
// and some withdrawn, and status changes among them: the scores equal a
// recount, and the outbox has each version of each report once and in order.
func TestConcurrentChangesAddUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	replicas := []*fixture{f, f.replica()}
	ids := make([]uuid.UUID, 5)
	for i := range ids {
		ids[i] = f.file(ann, draft(report.Anonymous)).ID
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for range 125 {
				voter := fmt.Sprintf("voter-%d", rand.IntN(40)) // of all workers
				vote := []report.Vote{report.Upvote, report.Upvote, report.Downvote, report.None}[rand.IntN(4)]
				if _, err := replicas[worker%2].Vote(t.Context(), ids[rand.IntN(len(ids))], voter, vote); err != nil {
					t.Errorf("Vote: %v", err)
				}
			}
			to := []report.Status{report.Pending, report.InProgress}[worker%2]
			if _, err := replicas[worker/4].Move(t.Context(), ids[0], report.Move{To: to, By: "olga"}); err != nil {
				t.Errorf("Move: %v", err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		f.recount(id)
	}
	f.checkOrder()
}

func (f *fixture) recount(id uuid.UUID) {
	f.t.Helper()
	var score, recount, version, announced int64
	err := f.pool.QueryRow(f.t.Context(), `
		select score, version,
			(select coalesce(sum(value), 0) from votes where report_id = r.id),
			(select count(*) from outbox_messages where report_id = r.id)
		from reports r where id = $1`, id).Scan(&score, &version, &recount, &announced)
	if err != nil {
		f.t.Fatal(err)
	}
	if score != recount || version != announced {
		f.t.Errorf("report %s: score %d and version %d; a recount gives %d and %d", id, score, version, recount, announced)
	}
}

// checkOrder expects the versions 1, 2, 3 … of each report in the order of seq.
func (f *fixture) checkOrder() {
	f.t.Helper()
	last := make(map[uuid.UUID]int64)
	for _, r := range f.outbox() {
		if r.Version != last[r.Report]+1 {
			f.t.Errorf("report %s: version %d follows %d", r.Report, r.Version, last[r.Report])
		}
		last[r.Report] = r.Version
	}
}

// When several officials saw the same version, one may act on it.
func TestIfMatchLetsOneWin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	replicas := []*fixture{f, f.replica()}
	id := f.file(ann, draft(report.Public)).ID
	seen, err := report.ParseIfMatch(`"1"`)
	if err != nil {
		t.Fatal(err)
	}
	var won, stale atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			switch _, err := replicas[i%2].Move(t.Context(), id, report.Move{To: report.InProgress, By: "olga", IfMatch: seen}); {
			case err == nil:
				won.Add(1)
			case fault.KindOf(err) == report.Stale:
				stale.Add(1)
			default:
				t.Errorf("Move: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || stale.Load() != 7 {
		t.Errorf("%d won and %d were stale, want 1 and 7", won.Load(), stale.Load())
	}
}
