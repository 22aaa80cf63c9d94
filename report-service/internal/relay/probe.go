package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A probe is the try of a message whose kind is held back.
type probe struct {
	key string
	row *row // nil if none waits
	err error
}

// probe tries a kind that is held back, if it is time: its oldest message, on
// a channel of its own.
func (s *session) probe(ctx context.Context, now time.Time) {
	key := s.relay.breakers.due(now)
	if key == "" || s.probing {
		return
	}
	for _, r := range s.tracked {
		if r.key == key {
			return // the oldest may be under way
		}
	}
	// One at a time, beside everything else: it waits for the database and for
	// the broker, and the other kinds are not to wait with it.
	s.probing = true
	leases := s.relay.leases.Active()
	s.relay.outstanding.Add(1) // for the guard: a probe must not go out after the lease either
	s.background.Go(func() {
		defer s.relay.outstanding.Add(-1)
		ctx, cancel := context.WithTimeout(ctx, s.relay.cfg.ConfirmTimeout)
		defer cancel()
		p := probe{key: key}
		p.row, p.err = s.relay.oldest(ctx, key, leases)
		if p.err == nil && p.row != nil {
			p.err = s.try(ctx, p.row)
		}
		s.probes <- p
	})
}

// try publishes r on a fresh channel: the refusals may be the old one's fault.
// A refusal is no attempt of the row's: the kind is on trial, not the row.
func (s *session) try(ctx context.Context, r *row) error {
	msg, err := r.message()
	if err != nil {
		return err
	}
	publisher, err := rabbit.NewPublisher(s.conn, 1)
	if err != nil {
		return err
	}
	defer publisher.Close()
	return publisher.PublishWait(ctx, s.relay.cfg.Topology.Exchange(), r.key, msg)
}

// probed takes in what came of it.
func (s *session) probed(p probe) {
	s.probing = false
	switch {
	case p.err == nil && p.row == nil:
		s.routed(p.key) // nothing waits: let the next one tell
	case p.err == nil:
		s.relay.metrics.published.WithLabelValues(p.key).Inc()
		s.routed(p.key)
		// A shard that is another's by now is marked all the same: the message is
		// out, and the sooner that is known, the less likely it goes out again.
		if s.relay.leases.Begin(p.row.Lease) {
			s.tracked[p.row.seq] = p.row
		}
		s.judge(p.row, "")
	default:
		s.relay.breakers.probed(p.key, p.err.Error(), time.Now())
		s.relay.cfg.Log.Warn().Err(p.err).Str("routing_key", p.key).Msg("messages of this kind are still held back")
	}
}

// oldest returns the oldest pending row of a kind in our shards, or nil. It may
// be waiting for its next attempt: any other would overtake it.
func (r *Relay) oldest(ctx context.Context, key string, leases []shards.Lease) (*row, error) {
	numbers := make([]int16, len(leases))
	epochs := make(map[int16]int64, len(leases))
	for i, c := range leases {
		numbers[i], epochs[c.Shard] = c.Shard, c.Epoch
	}
	one := row{key: key}
	err := r.cfg.Pool.QueryRow(ctx, `
		select m.shard, m.seq, m.id, m.report_id, m.payload, m.headers, m.created_at, m.retry_count
		from unnest($1::smallint[]) as s(shard)
		cross join lateral (
			select * from outbox_messages
			where status = 'pending' and shard = s.shard and routing_key = $2
			order by seq limit 1
		) m
		order by m.seq limit 1`, numbers, key).
		Scan(&one.Shard, &one.seq, &one.id, &one.report, &one.payload, &one.headers, &one.created, &one.retries)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read oldest of a kind: %w", err)
	}
	one.Epoch = epochs[one.Shard]
	return &one, nil
}
