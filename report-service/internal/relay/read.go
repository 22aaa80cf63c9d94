package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// readGap separates the beginnings of two reads while rows trickle in: it
	// bounds the reads per second, at a delay that residents do not notice.
	// When reads take long the machine is busy, and up to maxReadGap passes
	// between them, because many small reads would waste its time.
	readGap    = 4 * time.Millisecond
	maxReadGap = 20 * time.Millisecond
)

// A readSchedule decides when the next read begins: at once while reads are
// full, soon after a wake-up, and otherwise by polling, which becomes rarer
// while no rows are found.
type readSchedule struct {
	pollMin, pollMax time.Duration

	began     time.Time     // when the last read did
	gap       time.Duration // between the beginnings of two reads after wake-ups
	next      time.Time     // when the next one begins without a wake-up
	poll      time.Duration // the last pause between polls
	triggered bool          // a wake-up came since the last read began
	perShard  int           // how many rows of each shard are left to read, 0 for none known
}

// due returns when the next read should begin.
func (s *readSchedule) due() time.Time {
	switch soon := s.began.Add(s.gap); {
	case s.perShard > 0:
		return s.began
	case s.triggered && soon.Before(s.next):
		return soon
	default:
		return s.next
	}
}

// finished sets when to read next.
func (s *readSchedule) finished(res readResult, now time.Time) {
	s.gap = max(readGap, min(3*now.Sub(s.began), maxReadGap))
	s.perShard = 0
	if res.err != nil {
		s.next = now.Add(s.pollMax)
		return
	}
	if res.fullShards > 0 {
		s.perShard = max(1, readSize/res.fullShards) // only the full shards have more rows
	}
	if len(res.rows) > 0 {
		s.poll = s.pollMin
	} else {
		s.poll = min(2*s.poll, s.pollMax)
	}
	s.next = now.Add(backoff.Jitter(s.poll))
}

// mayRead reports whether more rows are needed. Half a read in the queue is
// enough to keep the broker busy while the next one runs; more rows would only
// be released, and read again, when a shard changes hands.
func (s *session) mayRead() bool {
	return !s.reading && !s.isBlocked && !s.reconnecting && len(s.rows.queue) <= readSize/2 && s.leases.Valid()
}

// startRead starts a read if one is due.
func (s *session) startRead(ctx context.Context, now time.Time) {
	if now.Before(s.schedule.due()) {
		return
	}
	leases := s.leases.Active()
	if len(leases) == 0 { // a change of the leases triggers a read
		s.schedule.triggered, s.schedule.perShard, s.schedule.next = false, 0, now.Add(s.cfg.PollMax)
		return
	}
	// From another shard on each time: on a starved machine sessions end before the last rows
	// of a read are published, and the same shards would wait for minutes.
	first := rand.IntN(len(leases))
	leases = slices.Concat(leases[first:], leases[:first])
	s.watermark.reads++
	req := readRequest{
		number: s.watermark.reads, leases: leases, above: make([]int64, len(leases)),
		openKeys: s.breaker.openKeys(), perShard: s.schedule.perShard,
	}
	if req.perShard == 0 {
		// An even part for each shard: a long backlog in one does not delay new
		// rows in the others.
		req.perShard = max(1, readSize/len(leases))
	}
	for i, lease := range leases {
		req.above[i] = s.watermark.at(lease)
	}
	for _, r := range s.rows.bySeq { // copied, because the session changes them during the read
		if r.seq > s.watermark.at(r.lease) { // the read starts above the others
			req.inProgress = append(req.inProgress, r)
		}
	}
	s.reading, s.schedule.began, s.schedule.triggered = true, now, false
	s.background.Go(func() { s.readResults <- s.reader.read(ctx, req) })
}

// accept queues the rows of a read.
func (s *session) accept(res readResult) error {
	s.reading = false
	now := time.Now()
	s.schedule.finished(res, now)
	if res.err != nil {
		s.log.Warn().Str("error", pgpool.LogText(res.err)).Msg("reading the outbox failed, will retry")
		return nil
	}
	usable, err := s.watermark.accept(res, now)
	if err != nil {
		return err
	}
	if !usable {
		s.schedule.next = now
		return nil
	}
	for _, r := range res.rows {
		if s.rows.isBlocked(r) || s.breaker.isOpen(r.key) || !s.rows.add(r) {
			s.watermark.lower(r)
		}
	}
	s.rows.unblock(res.number)
	return nil
}
