package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
)

const (
	// deliveryUpkeepBatch bounds one statement, so that it neither locks nor
	// writes for long.
	deliveryUpkeepBatch   = 5000
	deliveryUpkeepEvery   = time.Minute
	deliveryUpkeepTimeout = 30 * time.Second
)

// RunUpkeep keeps the ledger tidy until ctx ends. Any number of workers may run it:
// work that one of them has done is not found by the others.
func (s *Deliveries) RunUpkeep(ctx context.Context, retention time.Duration, log zerolog.Logger) error {
	for ctx.Err() == nil {
		pieceCtx, cancel := context.WithTimeout(ctx, deliveryUpkeepTimeout)
		more, err := s.Upkeep(pieceCtx, retention)
		cancel()
		if err != nil && ctx.Err() == nil {
			log.Warn().Str("error", failure.Describe(err)).Msg("upkeep of deliveries failed, will retry")
		}
		if !more || err != nil {
			_ = backoff.Sleep(ctx, deliveryUpkeepEvery/2+rand.N(deliveryUpkeepEvery)) // workers take turns by chance
		}
	}
	return nil
}

// Upkeep does the next piece of the ledger's upkeep, and reports whether
// more is left.
func (s *Deliveries) Upkeep(ctx context.Context, retention time.Duration) (more bool, err error) {
	for _, task := range []struct {
		what, sql string
		args      []any
	}{
		{"drop what is held for too long", dropHeldSQL, []any{webhook.MaxHeldFor, webhook.MaxHeld}},
		{"remove old deliveries", removeDeliveriesSQL, []any{retention}},
		{"forget when codes were sent", removeSQL("contact_codes", "sent_at"), []any{email.CodePeriod}},
		{"forget when proofs were sent", removeSQL("caller_mails", "due_at"), []any{email.CodePeriod}},
		{"remove old bounces", removeSQL("mail_bounces", "at"), []any{retention}},
	} {
		var n int
		if err := s.pool.QueryRow(ctx, task.sql, append([]any{freshPlan, deliveryUpkeepBatch}, task.args...)...).Scan(&n); err != nil {
			return false, fmt.Errorf("%s: %w", task.what, err)
		}
		more = more || n == deliveryUpkeepBatch
	}
	return more, nil
}

// More than the newest that are held for an endpoint, or for longer: the
// operators see how many were dropped.
const dropHeldSQL = `
with excess as (
  select d.id from webhook_endpoints e cross join lateral (
    select id, created_at, row_number() over (order by id desc) as place
    from deliveries where channel = 'webhook' and target = e.id::text and state = 'held') d
  where e.state = 'disabled' and (d.place > $3 or d.created_at < now() - $2::interval)
  order by d.id limit $1
), dropped as (
  update deliveries set state = 'cancelled', last_class = 'held', done_at = now()
  where id in (select id from excess) and state = 'held'
  returning target
), counted as (
  update webhook_endpoints e set held_dropped = held_dropped + d.n
  from (select target, count(*) as n from dropped group by target) d where e.id::text = d.target
)
select count(*) from dropped`

// removeSQL removes the rows of a table whose time is long ago.
func removeSQL(table, time string) string {
	return `
with removed as (
  delete from ` + table + ` where id = any(array(
    select id from ` + table + ` where ` + time + ` < now() - $2::interval order by ` + time + ` limit $1))
  returning id
)
select count(*) from removed`
}

// Deliveries come to an end about in the order of their ids, and stay for weeks
// after it: the old ones are among the first.
const removeDeliveriesSQL = `
with oldest as (
  select id, done_at from deliveries order by id limit 2 * $1
), removed as (
  delete from deliveries where id = any(array(
    select id from oldest where done_at < now() - $2::interval limit $1))
  returning id
), attempts as (
  delete from delivery_attempts where delivery_id in (select id from removed)
)
select count(*) from removed`
