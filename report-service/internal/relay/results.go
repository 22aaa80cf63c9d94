package relay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// resultBatch and resultDelay bound a batch of results: one commit for so
	// many rows, or for the rows of so much time. A crash leaves at most one
	// batch published and unrecorded, which is then published again.
	resultBatch = 1000
	resultDelay = 20 * time.Millisecond
	// resultTimeout ends one attempt to write a batch; the pause before the
	// next one doubles. Attempts are unlimited while the relay runs.
	resultTimeout  = 10 * time.Second
	minResultRetry = 250 * time.Millisecond
	maxResultRetry = 2 * time.Second
	// maxReason is how much of a refusal is kept in last_error.
	maxReason = 500
)

// A result is the outcome of a row that is to be recorded.
type result struct {
	row     *row
	refusal string // empty for a published row
	spared  bool   // the refusal does not count as an attempt: the queue is missing, and would refuse any message
}

// A resultWriter writes results to the outbox in batches, in a goroutine of its
// own.
type resultWriter struct {
	pool    *pgxpool.Pool
	owner   uuid.UUID // this replica
	cfg     Config
	log     zerolog.Logger
	seconds prometheus.Observer // of each batch

	in   chan result   // closed after the last one
	out  chan []result // committed batches; never full: there is room for every row in progress
	done chan struct{}
}

// run ends when in is closed and everything is written, or when ctx ends.
func (w *resultWriter) run(ctx context.Context) {
	defer close(w.done)
	// One batch at a time: while it commits the next one gathers, so that
	// batches grow with the load, and commits are as few as possible.
	for first := range w.in {
		batch := w.gather(first)
		retry := backoff.Backoff{First: minResultRetry, Max: maxResultRetry}
		err := w.write(ctx, batch)
		for err != nil && ctx.Err() == nil {
			w.log.Warn().Str("error", pgpool.LogText(err)).Int("rows", len(batch)).Msg("recording results failed, will retry")
			_ = backoff.Sleep(ctx, retry.Next())
			err = w.write(ctx, batch)
		}
		if err != nil {
			w.log.Error().Str("error", pgpool.LogText(err)).Int("rows", len(batch)).Msg("recording results failed, the rows will be published again")
			continue
		}
		w.out <- batch
	}
}

// gather returns a batch of first and the results that follow soon.
func (w *resultWriter) gather(first result) []result {
	batch := append(make([]result, 0, resultBatch), first)
	timer := time.NewTimer(resultDelay)
	defer timer.Stop()
	for len(batch) < resultBatch {
		select {
		case res, ok := <-w.in:
			if !ok {
				return batch
			}
			batch = append(batch, res)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// publishedSQL does not repeat the condition of the index of pending rows, on
// purpose: the rows are found by their primary key whatever the planner
// believes about how many are pending. A confirm marks even a row as published
// that has failed in the meantime.
const publishedSQL = `
	update outbox_messages set status = 'published', published_at = now(), next_attempt_at = null
	where id = any($1) and status <> 'published'`

// refusedSQL counts an attempt, except of a spared row, which keeps one so that
// reads recognise it as waiting. Only the owner of the shard may do so: a
// replica that lost it must not fail a row that its successor is publishing.
const refusedSQL = `
	update outbox_messages m
	set retry_count = case when r.spared then greatest(m.retry_count, 1) else m.retry_count + 1 end, last_error = r.reason,
	    status = case when r.failed then 'failed' else 'pending' end,
	    next_attempt_at = case when r.failed then null else now() + r.delay end
	from unnest($1::uuid[], $2::text[], $3::interval[], $4::boolean[], $6::boolean[]) as r(id, reason, delay, failed, spared)
	where m.id = any($1) and m.id = r.id and m.status <> 'published'
	  and exists (select from relay_shards s where s.shard = m.shard and s.owner = $5)`

// write writes a batch in one transaction.
func (w *resultWriter) write(ctx context.Context, batch []result) error {
	ctx, cancel := context.WithTimeout(ctx, resultTimeout)
	defer cancel()
	began := time.Now()
	published := make([]pgtype.UUID, 0, len(batch)) // pgx would encode uuid.UUID through its text
	var refused []uuid.UUID
	var reasons []string
	var delays []time.Duration
	var failed, spared []bool
	for _, res := range batch {
		if res.refusal == "" {
			published = append(published, pgtype.UUID{Bytes: res.row.id, Valid: true})
			continue
		}
		attempts := res.row.retries + 1
		reason := res.refusal
		if len(reason) > maxReason {
			// The cut may split a character, which PostgreSQL would refuse.
			reason = strings.ToValidUTF8(reason[:maxReason], "")
		}
		refused, reasons = append(refused, res.row.id), append(reasons, reason)
		delays = append(delays, backoff.Delay(w.cfg.RetryMin, w.cfg.RetryMax, attempts))
		failed, spared = append(failed, attempts >= w.cfg.MaxAttempts && !res.spared), append(spared, res.spared)
	}
	var writes pgx.Batch // without a begin of its own, it is one transaction and one round trip
	writes.Queue(publishedSQL, published)
	if len(refused) > 0 {
		writes.Queue(refusedSQL, refused, reasons, delays, failed, w.owner, spared)
	}
	if err := w.pool.SendBatch(ctx, &writes).Close(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	w.seconds.Observe(time.Since(began).Seconds())
	return nil
}
