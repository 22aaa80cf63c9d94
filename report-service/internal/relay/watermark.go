package relay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// barrierTimeout is how long a watermark waits for transactions to end
	// before it rises past them and they are watched.
	barrierTimeout = time.Second
	// maxWatched bounds the transactions that are watched.
	maxWatched = 64
	// watermarkReset is how often everything is read from the bottom. It is a
	// safety net for writers that break the rule of step 2 below: that take a
	// seq before their transaction has an id.
	watermarkReset = 30 * time.Second
)

// A watermark is, per shard, the highest seq below which no new pending row can
// appear. Reads start there.
//
// Without it every read would start at the bottom of the index, and scan all
// rows that were published since the last vacuum, which waits for the oldest
// open transaction. But a row may also become visible late, long after higher
// seqs, when a slow transaction commits. So a watermark rises in these steps:
//
//  1. Note S, the highest seq seen so far, and then X, the id that the next
//     transaction will get. This is the barrier.
//  2. Every transaction that took a seq up to S had locked the report before. So it
//     already had an id, and the id is below X.
//  3. Once a snapshot shows that every transaction below X has ended, no row up
//     to S can appear later: the watermark rises to S.
//  4. A transaction that stays open does not hold the watermark back for
//     longer than barrierTimeout. The watermark rises past it, and the
//     transaction is watched: the first snapshot in which it has ended may also
//     show its rows, so that read is not used, and all watermarks return to the
//     bottom.
//
// So the rows of a read that is used come from above a watermark below which
// nothing could appear when the read took its snapshot.
//
// Rows in progress are pending too, and watermarks rise past them: a read would
// only leave them out one by one. When a row is released while it is still
// pending, lower takes the watermark of its shard below it again. Earlier reads
// cannot raise it, because they did not read there.
type watermark struct {
	shards  [shards.Count]shardWatermark
	highest int64 // seq seen so far
	barrier barrier
	watched []uint64 // open transactions that may bring rows below the watermarks
	resetAt time.Time
	reads   int64 // reads started
}

type shardWatermark struct {
	epoch   int64 // of the lease; another epoch starts at the bottom
	seq     int64
	lowered int64 // number of the last read started before a row was released
}

// A barrier is what the watermarks wait for: that all transactions below an id
// end.
type barrier struct {
	xid   uint64 // zero: there is no barrier
	seq   int64
	since time.Time
}

// at returns the watermark of a lease.
func (w *watermark) at(lease shards.Lease) int64 {
	if s := w.shards[lease.Shard]; s.epoch == lease.Epoch {
		return s.seq
	}
	return 0
}

// lower makes the next reads find r, which is pending and no longer in
// progress.
func (w *watermark) lower(r *row) {
	s := &w.shards[r.lease.Shard]
	switch {
	case s.epoch > r.lease.Epoch: // the shard was read from the bottom since
	case s.epoch < r.lease.Epoch:
		*s = shardWatermark{epoch: r.lease.Epoch, lowered: w.reads}
	default:
		s.seq, s.lowered = min(s.seq, r.seq-1), w.reads
	}
}

// accept records a read, and reports whether its rows may be used.
func (w *watermark) accept(res readResult, now time.Time) (bool, error) {
	snap, err := parseSnapshot(res.snapshot, res.unlisted)
	if err != nil {
		return false, err
	}
	for _, xid := range w.watched {
		if ended := xid < snap.xmax && !slices.Contains(snap.listed, xid); ended {
			w.reset(now)
			return false, nil
		}
	}
	before := w.highest
	for _, r := range res.rows {
		w.highest = max(w.highest, r.seq)
	}
	if now.Sub(w.resetAt) > watermarkReset {
		w.reset(now)
		return true, nil
	}
	w.advance(res, snap, now)
	if w.barrier.xid == 0 {
		w.barrier = barrier{snap.next, before, now}
		w.advance(res, snap, now)
	}
	return true, nil
}

// reset takes all watermarks to the bottom.
func (w *watermark) reset(now time.Time) {
	*w = watermark{highest: w.highest, reads: w.reads, resetAt: now}
}

// advance raises the watermarks to the barrier if nothing can appear below it.
func (w *watermark) advance(res readResult, snap snapshot, now time.Time) {
	// A read that left out keys does not show their pending rows.
	if w.barrier.xid == 0 || len(res.openKeys) > 0 {
		return
	}
	running := snap.runningBelow(w.barrier.xid)
	if len(running) > 0 && (now.Sub(w.barrier.since) < barrierTimeout || len(running) > maxWatched) {
		return
	}
	// They include those watched before, which are older. So the list does not
	// grow beyond the open transactions.
	w.watched = running
	for i, lease := range res.leases {
		s := shardWatermark{epoch: lease.Epoch}
		if known := w.shards[lease.Shard]; known.epoch == lease.Epoch {
			s = known
		}
		// Not for shards whose rows are left out until they are due, or of
		// which a row was released after the read was started.
		if !slices.Contains(res.delayed, lease.Shard) && res.number > s.lowered {
			s.seq = max(s.seq, min(w.barrier.seq, res.completeTo[i]))
		}
		w.shards[lease.Shard] = s
	}
	w.barrier = barrier{}
}

// A snapshot describes the running transactions: the listed ones, and all from
// xmax up to next, which have an id and are too young to be listed.
type snapshot struct {
	listed     []uint64
	xmax, next uint64
}

// parseSnapshot reads "xmin:xmax:xip,xip…"; unlisted is how many ids from xmax
// on are in use.
func parseSnapshot(text string, unlisted uint32) (snapshot, error) {
	malformed := fmt.Errorf("malformed snapshot %q", text)
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return snapshot{}, malformed
	}
	xmax, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return snapshot{}, malformed
	}
	snap := snapshot{xmax: xmax, next: xmax + uint64(unlisted)}
	if parts[2] == "" {
		return snap, nil
	}
	for field := range strings.SplitSeq(parts[2], ",") {
		xid, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return snapshot{}, malformed
		}
		snap.listed = append(snap.listed, xid)
	}
	return snap, nil
}

// runningBelow returns the running transactions with an id below xid, but not
// more than too many to watch.
func (s snapshot) runningBelow(xid uint64) []uint64 {
	var running []uint64
	for _, listed := range s.listed {
		if listed < xid {
			running = append(running, listed)
		}
	}
	for young := s.xmax; young < min(xid, s.next) && len(running) <= maxWatched; young++ {
		running = append(running, young)
	}
	return running
}
