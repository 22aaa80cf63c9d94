package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// portion is how many deliveries one transaction brings to another state. An
	// endpoint may have 100,000, and on a busy machine each takes a millisecond:
	// a request that moved them all would reach the server's statement timeout,
	// and so would every repetition of it.
	portion = 500
	// settleEvery is how often a worker checks for deliveries to move.
	settleEvery = time.Second
	// settleTimeout bounds one portion.
	settleTimeout = 10 * time.Second
)

// RunSettle moves deliveries whose endpoint was changed until ctx ends. Any
// number of workers may run it.
func (s *Endpoints) RunSettle(ctx context.Context, log zerolog.Logger) error {
	retry := backoff.Backoff{First: settleEvery, Max: 30 * time.Second}
	for ctx.Err() == nil {
		portionCtx, cancel := context.WithTimeout(ctx, settleTimeout)
		more, err := s.Settle(portionCtx)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn().Str("error", failure.Describe(err)).Msg("moving deliveries of a changed endpoint failed, will retry")
			_ = backoff.Sleep(ctx, retry.Next())
		case !more:
			retry.Reset()
			_ = backoff.Sleep(ctx, settleEvery/2+rand.N(settleEvery))
		}
	}
	return nil
}

// unsettledSQL finds endpoints with deliveries in a state that does not fit
// theirs, among them those written by a transaction that saw the endpoint as it
// was a moment before.
const unsettledSQL = `
select id from webhook_endpoints e
where releasing or held_cancelled_at is not null
  or state = 'enabled' and exists (
    select from deliveries where channel = 'webhook' and target = e.id::text and state = 'held')
  or state = 'enabled' and exists (select from webhook_recoveries where endpoint_id = e.id)
  or state = 'disabled' and exists (
    select from deliveries where channel = 'webhook' and lane = e.id::text and state = 'waiting')
order by id`

// Settle moves the next portion of each endpoint whose deliveries do not fit its
// state, or are being recovered, and cancels a portion of those whose endpoint was deleted. It reports
// whether more may be left. Each portion is a transaction that begins with what
// the tables say, so that a worker may die between any two.
func (s *Endpoints) Settle(ctx context.Context) (more bool, err error) {
	ids, err := pgpool.Collect(ctx, s.pool, "find endpoints with deliveries to move", pgx.RowTo[uuid.UUID], unsettledSQL, freshPlan)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		left, err := s.settleOne(ctx, id)
		if err != nil {
			return false, err
		}
		more = more || left
	}
	cancelled, err := pgpool.Value[int](ctx, s.pool, "cancel deliveries of deleted endpoints", cancelOrphansSQL, freshPlan, portion)
	if err != nil {
		return false, err
	}
	return more || cancelled == portion, nil
}

// settleOne moves a portion of an endpoint's deliveries, unless another worker
// does. The lock keeps operators from changing the endpoint while it does.
func (s *Endpoints) settleOne(ctx context.Context, id uuid.UUID) (more bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var state webhook.State
		err := tx.QueryRow(ctx, `
			select state from webhook_endpoints where id = $1 for no key update skip locked`, id).Scan(&state)
		if err != nil { // or another worker has it
			return pgpool.Found(err, "lock webhook", nil)
		}
		more, err = settle(ctx, tx, id, state)
		return err
	})
	return more, err
}

// The moves take rows that nobody else has locked, since others lock a delivery
// before its endpoint. What they pass over is left for the next portion.
const (
	// cancelledHeld picks what the operator decided to cancel. Deliveries that were
	// written or sent again after that decision are kept; the latter have a lifetime
	// that began later. Parameter 2 is webhook.Lifetime.
	cancelledHeld = `d.created_at <= e.held_cancelled_at and d.not_after <= e.held_cancelled_at + $2::interval`
	cancelHeldSQL = `
		update deliveries set state = 'cancelled', done_at = now() where id = any(array(
		  select d.id from deliveries d, webhook_endpoints e
		  where e.id = $1::uuid and d.channel = 'webhook' and d.target = $1::text and d.state = 'held'
		    and ` + cancelledHeld + `
		  order by d.id limit $3 for update of d skip locked))`
	cancelledSQL = `
		update webhook_endpoints e set held_cancelled_at = null
		where id = $1::uuid and held_cancelled_at is not null and not exists (
		  select from deliveries d where d.channel = 'webhook' and d.target = $1::text and d.state = 'held'
		    and ` + cancelledHeld + `)`
	// The oldest are sent first. Each is due at once, and has a lifetime from now.
	releaseSQL = `
		update deliveries set state = 'waiting', due_at = now(), not_after = now() + $2::interval, retries = 0 where id = any(array(
		  select d.id from deliveries d, webhook_endpoints e
		  where e.id = $1::uuid and d.channel = 'webhook' and d.target = $1::text and d.state = 'held'
		    and (` + cancelledHeld + `) is not true
		  order by d.id limit $3 for update of d skip locked))`
	releasedSQL = `
		update webhook_endpoints e set releasing = false
		where id = $1::uuid and releasing and not exists (
		  select from deliveries d where d.channel = 'webhook' and d.target = $1::text and d.state = 'held'
		    and (` + cancelledHeld + `) is not true)`
	// The last ones first: if the endpoint is enabled again before all are held,
	// those that still wait come before those that are released.
	holdSQL = `
		update deliveries set state = 'held' where id = any(array(
		  select id from deliveries
		  where channel = 'webhook' and lane = $1::text and state = 'waiting'
		  order by due_at desc, id desc limit $2 for update skip locked))`
	// Each of the lists is read by jumping from endpoint to endpoint along its index.
	cancelOrphansSQL = `
		with recursive held as (
		  (select target from deliveries where channel = 'webhook' and state = 'held' order by target limit 1)
		  union all
		  select next.target from held cross join lateral (
		    select target from deliveries
		    where channel = 'webhook' and state = 'held' and target > held.target order by target limit 1) next
		), waiting as (
		  (select lane from deliveries where channel = 'webhook' and state = 'waiting' order by lane limit 1)
		  union all
		  select next.lane from waiting cross join lateral (
		    select lane from deliveries
		    where channel = 'webhook' and state = 'waiting' and lane > waiting.lane order by lane limit 1) next
		), orphans as (
		  select d.id from (
		    select target from held where not exists (select from webhook_endpoints e where e.id::text = held.target) offset 0) o
		  cross join lateral (
		    select id from deliveries where channel = 'webhook' and state = 'held' and target = o.target limit $1) d
		  union all
		  select d.id from (
		    select lane from waiting where not exists (select from webhook_endpoints e where e.id::text = waiting.lane) offset 0) o
		  cross join lateral (
		    select id from deliveries where channel = 'webhook' and state = 'waiting' and lane = o.lane limit $1) d
		  limit $1
		), cancelled as (
		  update deliveries set state = 'cancelled', done_at = now() where id in (
		    select id from deliveries where id in (select id from orphans) and state in ('held', 'waiting') for update skip locked)
		  returning id
		)
		select count(*) from cancelled`
)

// settle moves a portion of the deliveries of an endpoint, whose row tx has
// locked, to the state that fits its own, and reports whether more may be left.
func settle(ctx context.Context, tx pgx.Tx, id uuid.UUID, state webhook.State) (more bool, err error) {
	move := func(sql string, args ...any) {
		if err != nil {
			return
		}
		tag, execErr := tx.Exec(ctx, sql, append([]any{freshPlan, id.String()}, args...)...)
		err = execErr
		more = more || tag.RowsAffected() == portion
	}
	end := func(sql string) {
		if err == nil && !more {
			_, err = tx.Exec(ctx, sql, freshPlan, id.String(), webhook.Lifetime)
		}
	}
	move(cancelHeldSQL, webhook.Lifetime, portion)
	end(cancelledSQL)
	if state == webhook.Disabled {
		move(holdSQL, portion)
	} else {
		move(releaseSQL, webhook.Lifetime, portion)
		end(releasedSQL)
	}
	if err != nil {
		return false, fmt.Errorf("move deliveries of webhook: %w", err)
	}
	if more || state == webhook.Disabled {
		return more, nil
	}
	return recoverPortion(ctx, tx, id)
}
