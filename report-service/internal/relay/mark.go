package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// markBatch and markDelay bound a batch of marks: one commit for so many
	// rows, or for what came together in that time. A crash leaves at most one
	// batch published and unmarked, which is then published again.
	markBatch = 1000
	markDelay = 20 * time.Millisecond
	// markTimeout ends an attempt to mark; the pause before the next one doubles
	// from minMarkRetry. There is no last one while the relay runs.
	markTimeout  = 10 * time.Second
	minMarkRetry = 250 * time.Millisecond
	maxMarkRetry = 2 * time.Second
)

// A verdict is what is to be written down about a row.
type verdict struct {
	row     *row
	refusal string // empty for a published row
}

// A marker writes verdicts in batches, in a goroutine of its own.
type marker struct {
	relay *Relay
	in    chan verdict   // closed when no more come
	out   chan []verdict // committed batches; never full: there is room for every row under way
	done  chan struct{}
}

func (r *Relay) startMarker(ctx context.Context, room int) *marker {
	m := &marker{relay: r, in: make(chan verdict, room), out: make(chan []verdict, room), done: make(chan struct{})}
	go m.run(ctx)
	return m
}

// run ends when in is closed and everything is written, or when ctx ends.
func (m *marker) run(ctx context.Context) {
	defer close(m.done)
	// One batch at a time: while it commits the next one gathers, so that batches
	// are as large as the load, and commits as few as they can be.
	for first := range m.in {
		batch := m.collect(first)
		if err := m.write(ctx, batch); err != nil {
			m.relay.cfg.Log.Error().Err(err).Int("rows", len(batch)).
				Msg("published rows left unmarked, they will be published again")
			continue
		}
		m.out <- batch
	}
}

// collect waits a little for company.
func (m *marker) collect(first verdict) []verdict {
	batch := append(make([]verdict, 0, markBatch), first)
	timer := time.NewTimer(markDelay)
	defer timer.Stop()
	for len(batch) < markBatch {
		select {
		case v, ok := <-m.in:
			if !ok {
				return batch
			}
			batch = append(batch, v)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// write tries until it succeeds or ctx ends: what is published must be marked.
func (m *marker) write(ctx context.Context, batch []verdict) error {
	for retry := minMarkRetry; ; retry = min(2*retry, maxMarkRetry) {
		began := time.Now()
		err := m.relay.mark(ctx, batch)
		if err == nil {
			m.relay.metrics.markSeconds.Observe(time.Since(began).Seconds())
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		m.relay.cfg.Log.Warn().Err(err).Int("rows", len(batch)).Msg("marking delayed")
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// mark writes a batch in one transaction.
//
// status <> 'published' is not how the index of pending rows is defined, and
// that is meant: the rows are found by their primary key whatever the planner
// believes about how many are pending. A row that an operator's screen shows
// as failed is published nevertheless once a confirm says so.
func (r *Relay) mark(ctx context.Context, batch []verdict) error {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	published := make([]pgtype.UUID, 0, len(batch)) // pgx encodes uuid.UUID by way of its text
	var refused refusals
	for _, v := range batch {
		if v.refusal == "" {
			published = append(published, pgtype.UUID{Bytes: v.row.id, Valid: true})
		} else {
			refused.add(v, r.cfg.Settings)
		}
	}
	var writes pgx.Batch // without a begin of its own, it is one transaction and one round trip
	writes.Queue(`
		update outbox_messages set status = 'published', published_at = now(), next_attempt_at = null
		where id = any($1) and status <> 'published'`, published)
	if len(refused.ids) > 0 {
		writes.Queue(refuseSQL, refused.ids, refused.reasons, refused.delays, refused.failed, r.id)
	}
	if err := r.cfg.Pool.SendBatch(ctx, &writes).Close(); err != nil {
		return fmt.Errorf("mark outbox rows: %w", err)
	}
	return nil
}
