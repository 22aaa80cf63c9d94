package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const endpointColumns = `id, url, description, event_types, category_ids, area, state, state_since, state_reason,
  secret, secret_since, previous_secret, previous_secret_until, order_policy, in_flight, held_dropped, version, created_at, updated_at,
  disable_at, scopes`

func scanEndpoint(row pgx.CollectableRow) (e webhook.Endpoint, err error) {
	var area []float64
	err = row.Scan(&e.ID, &e.URL, &e.Description, &e.Filter.Types, &e.Filter.Categories, &area, &e.State, &e.StateSince, &e.StateReason,
		&e.Secrets.Sealed, &e.Secrets.Since, &e.Secrets.Previous, &e.Secrets.PreviousUntil,
		&e.Order, &e.InFlight, &e.HeldDropped, &e.Version, &e.CreatedAt, &e.UpdatedAt, &e.DisableAt, &e.Scopes)
	if len(area) > 0 {
		e.Filter.Area = (*webhook.Area)(area)
	}
	return e, err
}

// areaColumn returns a as the column has it: null is everywhere.
func areaColumn(a *webhook.Area) []float64 {
	if a == nil {
		return nil
	}
	return a[:]
}

// Endpoints are the endpoints of webhooks.
type Endpoints struct {
	pool    *pgxpool.Pool
	notices []string // the targets that have an address
}

// List returns up to limit endpoints with ids below before, newest first;
// the zero id begins at the newest.
func (s *Endpoints) List(ctx context.Context, before uuid.UUID, limit int) ([]webhook.Endpoint, error) {
	return pgpool.Collect(ctx, s.pool, "list webhooks", scanEndpoint, `
		select `+endpointColumns+` from webhook_endpoints
		where $1 = '00000000-0000-0000-0000-000000000000'::uuid or id < $1 order by id desc limit $2`, before, limit)
}

// Any reports whether there is any endpoint.
func (s *Endpoints) Any(ctx context.Context) (any bool, err error) {
	return pgpool.Value[bool](ctx, s.pool, "look for webhooks", `select exists (select from webhook_endpoints)`)
}

// Since returns when the oldest endpoint was registered. Without any it is now.
func (s *Endpoints) Since(ctx context.Context) (since time.Time, err error) {
	return pgpool.Value[time.Time](ctx, s.pool, "look for the oldest webhook", `select coalesce(min(created_at), now()) from webhook_endpoints`)
}

// Get returns an endpoint.
func (s *Endpoints) Get(ctx context.Context, id uuid.UUID) (webhook.Endpoint, error) {
	return readWebhook(ctx, s.pool, `where id = $1`, id)
}

func readWebhook(ctx context.Context, q pgpool.Querier, where string, id uuid.UUID) (webhook.Endpoint, error) {
	return pgpool.One(ctx, q, "read webhook", webhook.ErrNotFound, scanEndpoint, `select `+endpointColumns+` from webhook_endpoints `+where, id)
}

// summarySQL reads a bounded part of the log, so that an endpoint with millions
// of deliveries costs an operator's list no more than one with a thousand.
const summarySQL = `
select e.id, log.succeeded, log.failed, log.p95_ms, w.waiting, h.held, w.oldest, l.open_until
from unnest($1::uuid[]) as e (id)
cross join lateral (
  select count(*) filter (where d.state = 'done') as succeeded,
    count(*) filter (where d.state = 'dead' or d.state = 'waiting' and d.attempts > 0) as failed,
    percentile_disc(0.95) within group (order by a.duration_ms) as p95_ms
  from (
    select id, state, attempts from deliveries
    where channel = 'webhook' and target = e.id::text and created_at > now() - interval '24 hours'
    order by id desc limit 1000) d
  left join delivery_attempts a on d.state = 'done' and a.delivery_id = d.id and a.n = d.attempts) log
cross join lateral (
  select count(*) as waiting, min(created_at) as oldest from (
    select created_at from deliveries
    where channel = 'webhook' and lane = e.id::text and state = 'waiting' limit 100000) d) w
cross join lateral (
  select count(*) as held from (
    select from deliveries where channel = 'webhook' and target = e.id::text and state = 'held' limit 100000) d) h
left join lanes l on l.channel = 'webhook' and l.lane = e.id::text and l.open_until > now()`

// Summaries returns the summaries of endpoints, by their ids.
func (s *Endpoints) Summaries(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]webhook.Summary, error) {
	summaries := make(map[uuid.UUID]webhook.Summary, len(ids))
	var id uuid.UUID
	var sum webhook.Summary
	var p95 *int64
	err := pgpool.ForEach(ctx, s.pool, "sum up webhooks", []any{
		&id, &sum.Succeeded, &sum.Failed, &p95, &sum.Waiting, &sum.Held, &sum.OldestWaiting, &sum.OpenUntil,
	}, func() error {
		if sum.P95 = nil; p95 != nil {
			sum.P95 = new(time.Duration(*p95) * time.Millisecond)
		}
		summaries[id] = sum
		return nil
	}, summarySQL, ids)
	if err != nil {
		return nil, err
	}
	return summaries, nil
}

// Create keeps a new endpoint, and fills in its times.
func (s *Endpoints) Create(ctx context.Context, actor string, e *webhook.Endpoint) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Two at the same time may both be the last one: the limit guards the
		// expansion of events, and promises nothing.
		n, err := pgpool.Value[int](ctx, tx, "count webhooks", `select count(*) from webhook_endpoints`)
		if err != nil {
			return err
		}
		if n >= webhook.MaxEndpoints {
			return webhook.ErrTooMany
		}
		err = tx.QueryRow(ctx, `
			insert into webhook_endpoints (id, url, description, event_types, category_ids, area, state, secret, order_policy, in_flight, version, scopes)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			returning state_since, secret_since, created_at, updated_at`,
			e.ID, e.URL, e.Description, orEmpty(e.Filter.Types), orEmpty(e.Filter.Categories), areaColumn(e.Filter.Area), e.State,
			e.Secrets.Sealed, e.Order, e.InFlight, e.Version, orEmpty(e.Scopes)).Scan(&e.StateSince, &e.Secrets.Since, &e.CreatedAt, &e.UpdatedAt)
		if err != nil {
			return fmt.Errorf("write webhook: %w", err)
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookCreate, e.ID, registrationDetail(e.Registration()))
	})
}

// orEmpty returns s, or an empty slice for the nil one, which would be null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Change changes an endpoint that is at version, or at any if that is 0,
// to what the rules allow.
func (s *Endpoints) Change(ctx context.Context, actor string, id uuid.UUID, version int64, change webhook.Change, rules webhook.Rules) (webhook.Endpoint, error) {
	return s.change(ctx, id, version, func(tx pgx.Tx, e *webhook.Endpoint) error {
		reg := change.Apply(e.Registration())
		if err := rules.Check(reg, e.URL); err != nil {
			return err
		}
		err := pgpool.Exec(ctx, tx, "write webhook", `
			update webhook_endpoints set url = $2, description = $3, event_types = $4, category_ids = $5, area = $6,
			  order_policy = $7, in_flight = $8
			where id = $1`,
			id, reg.URL, reg.Description, orEmpty(reg.Filter.Types), orEmpty(reg.Filter.Categories), areaColumn(reg.Filter.Area), reg.Order, reg.InFlight)
		if err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookChange, id, registrationDetail(reg))
	})
}

// change lets change write to the endpoint whose row is locked, counts
// the version up, and returns the endpoint as it is then.
func (s *Endpoints) change(ctx context.Context, id uuid.UUID, version int64, change func(pgx.Tx, *webhook.Endpoint) error) (webhook.Endpoint, error) {
	var changed webhook.Endpoint
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		e, err := readWebhook(ctx, tx, `where id = $1 for update`, id)
		if err != nil {
			return err
		}
		if version != 0 && version != e.Version {
			return webhook.NewStale(e.Version)
		}
		if err := change(tx, &e); err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "count version of webhook", `update webhook_endpoints set version = version + 1, updated_at = now() where id = $1`, id)
		if err != nil {
			return err
		}
		changed, err = readWebhook(ctx, tx, `where id = $1`, id)
		return err
	})
	return changed, err
}

// Delete removes an endpoint that is at version, or at any if that is 0. What
// waits for it, or is held, is cancelled in portions: see Settle.
func (s *Endpoints) Delete(ctx context.Context, actor string, id uuid.UUID, version int64) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		e, err := readWebhook(ctx, tx, `where id = $1 for update`, id)
		if err != nil {
			return err
		}
		if version != 0 && version != e.Version {
			return webhook.NewStale(e.Version)
		}
		if err := pgpool.Exec(ctx, tx, "delete webhook", `delete from webhook_endpoints where id = $1`, id); err != nil {
			return err
		}
		if err := pgpool.Exec(ctx, tx, "cancel deliveries of webhook", cancelOrphansSQL, freshPlan, portion); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookDelete, id, registrationDetail(e.Registration()))
	})
}

// Rotate gives an endpoint the sealed secret; the one before signs
// beside it for keep.
func (s *Endpoints) Rotate(ctx context.Context, actor string, id uuid.UUID, sealed string, keep time.Duration) (webhook.Endpoint, error) {
	return s.change(ctx, id, 0, func(tx pgx.Tx, _ *webhook.Endpoint) error {
		err := pgpool.Exec(ctx, tx, "rotate secret of webhook", `
			update webhook_endpoints set secret = $2, secret_since = now(),
			  previous_secret = case when $3 > interval '0' then secret end,
			  previous_secret_until = case when $3 > interval '0' then now() + $3 end
			where id = $1`, id, sealed, keep)
		if err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookRotate, id, map[string]any{"keep_old_for_s": int64(keep.Seconds())})
	})
}

// Enable lets a disabled endpoint have its events again. Held deliveries are sent, or
// cancelled, in portions: see Settle. New ones are sent after those that are held.
func (s *Endpoints) Enable(ctx context.Context, actor string, id uuid.UUID, sendHeld bool) (webhook.Endpoint, error) {
	return s.change(ctx, id, 0, func(tx pgx.Tx, e *webhook.Endpoint) error {
		if e.State == webhook.Enabled {
			return webhook.ErrEnabled
		}
		err := pgpool.Exec(ctx, tx, "enable webhook", `
			update webhook_endpoints set state = 'enabled', state_since = now(), state_reason = '', held_dropped = 0,
			  releasing = $2, held_cancelled_at = case when $2 then held_cancelled_at else now() end
			where id = $1`, id, sendHeld)
		if err != nil {
			return err
		}
		// Earlier failures belong to the time before: the next failure is the first one.
		err = pgpool.Exec(ctx, tx, "close circuit of webhook", `
			update lanes set failures = 0, failing_since = null, open_until = null where channel = 'webhook' and lane = $1`, id.String())
		if err != nil {
			return err
		}
		if _, err := settle(ctx, tx, id, webhook.Enabled); err != nil {
			return err
		}
		held := "cancel"
		if sendHeld {
			held = "send"
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookEnable, id, map[string]any{"held": held})
	})
}

// Disable holds back what an endpoint is to have.
func (s *Endpoints) Disable(ctx context.Context, actor string, id uuid.UUID) (webhook.Endpoint, error) {
	return s.change(ctx, id, 0, func(tx pgx.Tx, e *webhook.Endpoint) error {
		if e.State == webhook.Disabled {
			return webhook.ErrDisabled
		}
		if _, err := disable(ctx, tx, id, webhook.ByOperator); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookDisable, id, map[string]any{})
	})
}

// disable disables an enabled endpoint and holds a portion of what waits for it.
// It reports whether the endpoint was enabled.
func disable(ctx context.Context, tx pgx.Tx, id uuid.UUID, reason webhook.Reason) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update webhook_endpoints set state = 'disabled', state_since = now(), state_reason = $2, releasing = false, updated_at = now(), disable_at = null
		where id = $1 and state = 'enabled'`, id, reason)
	if err != nil {
		return false, fmt.Errorf("disable webhook: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	_, err = settle(ctx, tx, id, webhook.Disabled)
	return true, err
}

// auditWebhook notes what an operator did to an endpoint.
func auditWebhook(ctx context.Context, tx pgx.Tx, actor string, action audit.Action, endpoint uuid.UUID, detail map[string]any) error {
	detail["endpoint"] = endpoint
	return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: action}, detail)
}

// registrationDetail is what the audit log keeps of a registration. An address
// may carry a key in its path or query, so that only its host is kept.
func registrationDetail(reg webhook.Registration) map[string]any {
	return map[string]any{
		"host": reg.Host(), "description": reg.Description, "event_types": orEmpty(reg.Filter.Types),
		"category_ids": orEmpty(reg.Filter.Categories), "area": reg.Filter.Area, "scopes": orEmpty(reg.Scopes), "order": reg.Order, "in_flight": reg.InFlight,
	}
}
