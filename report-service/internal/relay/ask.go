package relay

import (
	"context"
	"math/rand/v2"
	"time"
)

// ask starts a read when it is due and there is use for it.
func (s *session) ask(ctx context.Context, now time.Time) {
	if !s.mayRead() {
		return
	}
	s.probe(ctx, now) // due by the breaker's clock, not by that of the polls
	if now.Before(s.due()) {
		return
	}
	leases := s.relay.leases.Active()
	if len(leases) == 0 {
		s.nextRead = now.Add(s.relay.cfg.PollMax) // a change wakes us
		return
	}
	s.reads++
	s.reading, s.woken, s.lastRead = true, false, now
	q := question{
		number: s.reads, leases: leases, floors: make([]int64, len(leases)),
		shut: s.relay.breakers.shut(), perShard: s.perShard,
	}
	if q.perShard == 0 {
		// An even part for each shard: a long backlog in one does not keep what
		// is fresh in the others waiting.
		q.perShard = max(1, pageSize/len(leases))
	}
	for i, c := range leases {
		q.floors[i] = s.horizon.at(c)
	}
	for _, r := range s.tracked { // copied: the session goes on while the page is read
		if r.seq > s.horizon.at(r.Lease) { // a page begins above the others
			q.underway = append(q.underway, r)
		}
	}
	s.background.Go(func() { s.pages <- s.relay.read(ctx, q) })
}

// mayRead tells whether more rows could be put to use. Half a page in the queue
// is enough to keep the broker busy while the next is read; more of them would
// only be dropped, and read again, when a shard changes hands.
func (s *session) mayRead() bool {
	return !s.reading && !s.isBlocked && !s.renewing && len(s.queue) <= pageSize/2 && s.relay.leases.Valid()
}

// due is when the next read should begin: at once if the last page was full,
// soon if a commit was announced.
func (s *session) due() time.Time {
	switch soon := s.lastRead.Add(s.gap); {
	case s.more:
		return s.lastRead
	case s.woken && soon.Before(s.nextRead):
		return soon
	default:
		return s.nextRead
	}
}

// take queues the rows of a page.
func (s *session) take(p page) error {
	s.reading = false
	now := time.Now()
	s.gap = gapAfter(now.Sub(s.lastRead))
	if p.err != nil {
		s.relay.cfg.Log.Warn().Err(p.err).Msg("reading delayed")
		s.more, s.nextRead = false, now.Add(s.relay.cfg.PollMax)
		return nil
	}
	usable, err := s.horizon.accept(p, now)
	if err != nil {
		return err
	}
	if !usable {
		s.nextRead = now // from the bottom, see horizon
		return nil
	}
	for _, r := range p.rows {
		after, held := s.held[r.report]
		if (held && p.number <= after) || s.relay.breakers.isShut(r.key) || !s.relay.leases.Begin(r.Lease) {
			s.horizon.back(r, s.reads)
			continue
		}
		s.tracked[r.seq] = r
		s.queue = append(s.queue, r)
	}
	for report, after := range s.held {
		if p.number > after {
			delete(s.held, report)
		}
	}
	s.plan(p, now)
	return nil
}

// plan sets when to read next: at once while there is more, soon while rows
// come, and ever more rarely while none do.
func (s *session) plan(p page, now time.Time) {
	s.more = p.full > 0
	s.perShard = 0
	if s.more {
		// Only the full shards have more to give, so the page is theirs.
		s.perShard = max(1, pageSize/p.full)
	}
	if len(p.rows) > 0 {
		s.poll = s.relay.cfg.PollMin
	} else {
		s.poll = min(2*s.poll, s.relay.cfg.PollMax)
	}
	s.nextRead = now.Add(jitter(s.poll))
}

// gapAfter returns the time from the beginning of a read that took so long to
// that of the next.
func gapAfter(took time.Duration) time.Duration { return max(readGap, min(3*took, maxReadGap)) }

// jitter spreads d by ±20 %, so that replicas do not poll in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
