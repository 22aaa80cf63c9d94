package relay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
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
// moves only like this: note the id X of a transaction of our own (a batch of
// marks) and the highest seq S seen before it began. Whoever took a seq up to
// S had an id below X by then. Once a snapshot shows everything below X ended,
// no row up to S can appear any more.
//
// A transaction that stays open would hold the floors back for as long. After
// some patience they move past it, and it is watched: the first snapshot that
// shows it ended may also show its rows, so that page is not used, and the
// floors begin anew at the bottom. Whatever is in a page that is used was read
// from a floor below all that could still appear.
type horizon struct {
	floors  [outbox.ShardCount]floor
	highest int64 // seq seen so far
	next    mark
	watched []uint64 // open transactions that may bring rows below the floors
	reset   time.Time
}

type floor struct {
	epoch int64 // of the shard's claim; another epoch begins at the bottom
	seq   int64
}

// A mark is what the floors wait for. An xid of zero waits for nothing.
type mark struct {
	xid   uint64
	seq   int64
	since time.Time
}

func newHorizon(now time.Time) *horizon { return &horizon{reset: now} }

// at returns the floor of a claim.
func (h *horizon) at(c claim) int64 {
	if f := h.floors[c.shard]; f.epoch == c.epoch {
		return f.seq
	}
	return 0
}

// wrote notes a transaction of our own that began when highest was the highest
// seq seen.
func (h *horizon) wrote(xid uint64, highest int64, now time.Time) {
	if h.next.xid == 0 {
		h.next = mark{xid, highest, now}
	}
}

// accept takes note of a page, and returns whether it may be used.
func (h *horizon) accept(p page, now time.Time) (bool, error) {
	running, err := parseSnapshot(p.snapshot)
	if err != nil {
		return false, err
	}
	for _, xid := range h.watched {
		if !slices.Contains(running, xid) {
			*h = horizon{highest: h.highest, reset: now}
			return false, nil
		}
	}
	for _, row := range p.rows {
		h.highest = max(h.highest, row.seq)
	}
	if now.Sub(h.reset) > floorReset {
		*h = horizon{highest: h.highest, reset: now}
		return true, nil
	}
	h.advance(p, running, now)
	return true, nil
}

// advance moves the floors up to the mark if nothing can appear below it.
func (h *horizon) advance(p page, running []uint64, now time.Time) {
	if h.next.xid == 0 || len(p.shut) > 0 { // a page without the kinds that are held back does not show what is lowest
		return
	}
	open := slices.DeleteFunc(running, func(xid uint64) bool { return xid >= h.next.xid })
	if len(open) > 0 && (now.Sub(h.next.since) < patience || len(open) > maxWatched) {
		return
	}
	// Those watched before are among them: they are older. So the list does not
	// grow beyond what is open.
	h.watched = open
	lowest := p.lowest()
	for _, c := range p.claims {
		seq := h.next.seq
		if low, ok := lowest[c.shard]; ok {
			seq = min(seq, low-1)
		}
		if !slices.Contains(p.delayed, c.shard) {
			h.floors[c.shard] = floor{c.epoch, max(seq, h.at(c))}
		}
	}
	h.next = mark{}
}

// lowest returns the lowest pending seq of each shard that the page knows of:
// in it, or under way when it was asked for.
func (p page) lowest() map[int16]int64 {
	lowest := make(map[int16]int64, outbox.ShardCount)
	note := func(shard int16, seq int64) {
		if low, ok := lowest[shard]; !ok || seq < low {
			lowest[shard] = seq
		}
	}
	for _, row := range p.rows {
		note(row.shard, row.seq)
	}
	for _, u := range p.underway {
		note(u.shard, u.seq)
	}
	return lowest
}

// parseSnapshot reads "xmin:xmax:xip,xip…" and returns the running
// transactions. Those from xmax on are none that a mark or a watch can mean:
// a mark is committed when the snapshot is taken.
func parseSnapshot(text string) ([]uint64, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return nil, fmt.Errorf("malformed snapshot %q", text)
	}
	if parts[2] == "" {
		return nil, nil
	}
	var running []uint64
	for field := range strings.SplitSeq(parts[2], ",") {
		xid, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("malformed snapshot %q", text)
		}
		running = append(running, xid)
	}
	return running, nil
}
