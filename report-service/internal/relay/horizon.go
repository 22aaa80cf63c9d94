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
	// patience is how long the floors wait for transactions to end before they
	// move past them under watch.
	patience = time.Second
	// maxWatched bounds the transactions that are watched.
	maxWatched = 64
	// floorReset is how often everything is looked at from the beginning. It
	// is a net under the reasoning below, for writers that do not keep to it:
	// that take a seq before their transaction has an id.
	floorReset = 30 * time.Second
)

// A horizon knows how far down the outbox need not be looked at any more: per
// shard a floor, at or below which no pending row will ever appear.
//
// Rows leave the index of pending rows only when vacuum comes by, and vacuum
// waits for the oldest open transaction; reading from the bottom each time
// would wade through all that was published since. But a row may also appear
// late, long after higher seqs, when a slow transaction commits. So a floor
// moves only like this: note the highest seq S seen, and later the id X that
// the next transaction will get. Whoever took a seq up to S had an id below X
// by then. Once a snapshot shows everything below X ended, no row up to S can
// appear any more.
//
// A transaction that stays open would hold the floors back for as long. After
// some patience they move past it, and it is watched: the first snapshot that
// shows it ended may also show its rows, so that page is not used, and the
// floors begin anew at the bottom. Whatever is in a page that is used was read
// from a floor below all that could still appear.
//
// Rows that are under way are pending too, and the floors move past them: a
// page would only leave them out, one by one. A row that comes back, refused or
// lost or not ours to publish for the moment, takes the floor of its shard down
// again.
type horizon struct {
	floors  [shards.Count]floor
	highest int64 // seq seen so far
	next    mark
	watched []uint64 // open transactions that may bring rows below the floors
	reset   time.Time
}

type floor struct {
	epoch   int64 // of the shard's claim; another epoch begins at the bottom
	seq     int64
	lowered int64 // number of the last page that may have been asked for above a row that came back
}

// A mark is what the floors wait for: that all transactions below an id end.
type mark struct {
	xid   uint64 // zero: there is no mark
	seq   int64
	since time.Time
}

func newHorizon(now time.Time) *horizon { return &horizon{reset: now} }

// at returns the floor of a claim.
func (h *horizon) at(c shards.Lease) int64 {
	if f := h.floors[c.Shard]; f.epoch == c.Epoch {
		return f.seq
	}
	return 0
}

// back notes that a row is pending and not under way any more. Of the pages
// asked for so far, none can tell that nothing is pending up there.
func (h *horizon) back(r *row, asked int64) {
	f := &h.floors[r.Shard]
	switch {
	case f.epoch > r.Epoch: // the shard was read anew since
	case f.epoch < r.Epoch:
		*f = floor{epoch: r.Epoch, lowered: asked}
	default:
		f.seq, f.lowered = min(f.seq, r.seq-1), asked
	}
}

// accept takes note of a page, and returns whether it may be used.
func (h *horizon) accept(p page, now time.Time) (bool, error) {
	snap, err := parseSnapshot(p.snapshot, p.unlisted)
	if err != nil {
		return false, err
	}
	for _, xid := range h.watched {
		if !snap.shows(xid) {
			*h = horizon{highest: h.highest, reset: now}
			return false, nil
		}
	}
	before := h.highest
	for _, row := range p.rows {
		h.highest = max(h.highest, row.seq)
	}
	if now.Sub(h.reset) > floorReset {
		*h = horizon{highest: h.highest, reset: now}
		return true, nil
	}
	h.advance(p, snap, now)
	if h.next.xid == 0 {
		h.next = mark{snap.next, before, now}
		h.advance(p, snap, now)
	}
	return true, nil
}

// advance moves the floors up to the mark if nothing can appear below it.
func (h *horizon) advance(p page, snap snapshot, now time.Time) {
	if h.next.xid == 0 || len(p.shut) > 0 { // it does not show what is pending of the kinds that are held back
		return
	}
	open := snap.below(h.next.xid)
	if len(open) > 0 && (now.Sub(h.next.since) < patience || len(open) > maxWatched) {
		return
	}
	// Those watched before are among them: they are older. So the list does not
	// grow beyond what is open.
	h.watched = open
	for i, c := range p.leases {
		f := floor{epoch: c.Epoch}
		if known := h.floors[c.Shard]; known.epoch == c.Epoch {
			f = known
		}
		// Not where rows are left out until they are due, nor where one came back
		// while the page was read.
		if !slices.Contains(p.delayed, c.Shard) && p.number > f.lowered {
			f.seq = max(f.seq, min(h.next.seq, p.reach[i]))
		}
		h.floors[c.Shard] = f
	}
	h.next = mark{}
}

// A snapshot tells which transactions run: those listed, and all from xmax up
// to next, which have an id and are too young to be listed.
type snapshot struct {
	listed     []uint64
	xmax, next uint64
}

// parseSnapshot reads "xmin:xmax:xip,xip…"; unlisted is how many ids from xmax
// on are taken.
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

// shows tells whether a transaction that has an id still runs.
func (s snapshot) shows(xid uint64) bool { return xid >= s.xmax || slices.Contains(s.listed, xid) }

// below returns the running transactions with an id below xid, or as many as
// are too many to watch.
func (s snapshot) below(xid uint64) []uint64 {
	var open []uint64
	for _, listed := range s.listed {
		if listed < xid {
			open = append(open, listed)
		}
	}
	for young := s.xmax; young < min(xid, s.next) && len(open) <= maxWatched; young++ {
		open = append(open, young)
	}
	return open
}
