package relay

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// Each way of a row through its states leaves every book balanced, so that its
// shard can be released and the guard lets heartbeats pass.
func TestRowStates(t *testing.T) {
	t.Parallel()
	lease := shards.Lease{Shard: 3, Epoch: 1}
	for name, path := range map[string]func(*rowTracker, *row){
		"published": func(t *rowTracker, r *row) {
			t.move(t.next(), inFlight)
			t.move(r, recording)
			t.finish(r)
		},
		"refused": func(t *rowTracker, r *row) {
			t.move(t.next(), inFlight)
			t.move(r, recording)
			t.release(r)
		},
		"lost":          func(t *rowTracker, r *row) { t.move(t.next(), inFlight); t.release(r) },
		"unpublishable": func(t *rowTracker, r *row) { t.move(t.next(), recording); t.release(r) },
		"circuit open":  func(t *rowTracker, _ *row) { t.release(t.next()) },
		"session ended": func(t *rowTracker, _ *row) { t.move(t.next(), inFlight); t.close() },
		"lease lost": func(t *rowTracker, _ *row) {
			t.leases.Renew(nil, time.Now().Add(time.Hour))
			t.releaseUnowned()
			t.leases.Renew([]shards.Lease{lease}, time.Now().Add(time.Hour))
		},
	} {
		leases, sending := shards.NewLeases(), new(atomic.Int64)
		leases.Renew([]shards.Lease{lease}, time.Now().Add(time.Hour))
		rows := testTracker(leases, sending)
		r := &row{lease: lease, seq: 7, report: uuid.New()}
		if !rows.add(r) {
			t.Fatalf("%s: an owned row is not taken", name)
		}
		path(rows, r)
		if rows.count != [rowStates]int{} || len(rows.bySeq)+len(rows.queue) != 0 || sending.Load() != 0 {
			t.Errorf("%s: counts %v, %d tracked, %d queued, %d sending; want none",
				name, rows.count, len(rows.bySeq), len(rows.queue), sending.Load())
		}
		if rows.add(&row{lease: shards.Lease{Shard: 3, Epoch: 2}}) {
			t.Errorf("%s: a row of another epoch is taken", name)
		}
	}
}

// After a refusal the later rows of the report wait for a read that knows of it.
func TestBlockedReport(t *testing.T) {
	t.Parallel()
	rows := testTracker(shards.NewLeases(), new(atomic.Int64))
	r := &row{report: uuid.New(), read: 1}
	rows.block(r, untilRecorded)
	if !rows.isBlocked(&row{report: r.report, read: 5}) || rows.isBlocked(&row{report: uuid.New(), read: 5}) {
		t.Error("want the report blocked until the refusal is recorded, and no other")
	}
	rows.block(r, 5)
	rows.unblock(5)
	if !rows.isBlocked(&row{report: r.report, read: 5}) || rows.isBlocked(&row{report: r.report, read: 6}) {
		t.Error("want the report blocked for reads up to 5")
	}
	rows.unblock(6)
	if len(rows.blocked) != 0 {
		t.Errorf("blocked are %v, want none after read 6", rows.blocked)
	}
}

func testTracker(leases *shards.Leases, sending *atomic.Int64) *rowTracker {
	return &rowTracker{
		leases: leases, watermark: new(watermark), sending: sending,
		bySeq: make(map[int64]*row), blocked: make(map[uuid.UUID]int64),
	}
}
