package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// mostAtOnce is how many deliveries one transaction may change, of the 100,000
// that an endpoint may have.
const mostAtOnce = 1000

// An endpoint with as many deliveries as are held at most can be enabled,
// disabled and removed by short transactions, with all deliveries moved
// afterwards, whenever a worker dies in between.
func TestManyHeldAreMovedInPortions(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	if _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); err != nil {
		t.Fatal(err)
	}
	fill := func(state string, n int) {
		t.Helper()
		mustExec(t, pool, `delete from deliveries`)
		mustExec(t, pool, `
			insert into deliveries (channel, lane, target, message_id, kind, report_id, report_version, body, state, created_at, due_at, not_after)
			select 'webhook', $1, $1, $2 || n, 'report.created', gen_random_uuid(), 1, '{}', $3, at, at, at + interval '7 days'
			from generate_series(1, $4) n, lateral (select now() - interval '1 day' + n * interval '1 ms' as at) a`,
			e.ID.String(), uuid.NewString(), state, n)
	}
	enable := func(send bool) func() error {
		return func() error { _, err := store.Endpoints.Enable(t.Context(), "pavel", e.ID, send); return err }
	}

	fill("held", webhook.MaxHeld)
	wantShort(t, pool, "enable", enable(true))
	mustExpand(t, store, zebra(e.ID).created())
	if got := count(t, pool, `select count(*) from deliveries where state = 'held' and body <> '{}'`); got != 1 {
		t.Errorf("an event while held ones are being sent: %d of 1 wait behind them", got)
	}
	for range 5 {
		wantShort(t, pool, "a worker", func() error { _, err := store.Endpoints.Settle(t.Context()); return err })
	}
	// The rest takes a minute, and fewer are moved in the same way.
	mustExec(t, pool, `
		delete from deliveries where state = 'held' and id between (select min(id) + 5000 from deliveries) and (select max(id) - 2000 from deliveries)`)
	want := count(t, pool, `select count(*) from deliveries`)
	settleAll(t, store, pool)
	if got := count(t, pool, `select count(*) from deliveries where state = 'waiting'`); got != want {
		t.Errorf("%d deliveries wait, want all %d that were held", got, want)
	}
	if got := count(t, pool, `
		select count(*) from (select id, lag(id) over (order by due_at, id) as before from deliveries) d where id < before`); got != 0 {
		t.Errorf("%d deliveries are to be sent before an earlier one", got)
	}
	mustExpand(t, store, zebra(uuid.New()).created())
	if got := count(t, pool, `select count(*) from deliveries where state = 'held'`); got != 0 {
		t.Errorf("%d events are held after all held ones are sent", got)
	}

	const some = 3000
	fill("waiting", some)
	wantShort(t, pool, "disable", func() error { _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); return err })
	settleAll(t, store, pool)
	if got := states(t, pool, e); got != "held:3000" {
		t.Errorf("disabled, the deliveries are %s", got)
	}
	wantShort(t, pool, "enable without what is held", enable(false))
	again := count(t, pool, `select min(id) from deliveries where state = 'cancelled'`)
	if _, err := store.Deliveries.Resend(t.Context(), "pavel", int64(again)); err != nil { // in between, and
		t.Fatal(err)
	}
	if _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); err != nil { // it is to be held now
		t.Fatal(err)
	}
	mustExpand(t, store, zebra(uuid.New()).created()) // as is this one
	settleAll(t, store, pool)
	if got := states(t, pool, e); got != "cancelled:2999 held:2" {
		t.Errorf("enabled without what was held, and disabled at once, the deliveries are %s", got)
	}

	fill("waiting", some)
	if _, err := store.Endpoints.Enable(t.Context(), "pavel", e.ID, true); err != nil {
		t.Fatal(err)
	}
	wantShort(t, pool, "give up", func() error { _, err := store.Endpoints.GiveUp(t.Context(), e.ID, webhook.Failing); return err })
	mustExec(t, pool, `update deliveries set state = 'waiting' where id % 3 = 0`)
	wantShort(t, pool, "delete", func() error { return store.Endpoints.Delete(t.Context(), "pavel", e.ID, 0) })
	settleAll(t, store, pool)
	if got := states(t, pool, e); got != "cancelled:3000" {
		t.Errorf("removed, the deliveries are %s", got)
	}
}

// wantShort does what an operator asks for, and wants few rows changed by it.
func wantShort(t *testing.T, pool *pgxpool.Pool, what string, act func() error) {
	t.Helper()
	if n := changes(t, pool, act); n > mostAtOnce {
		t.Errorf("%s changes %d deliveries in its transaction, want %d at most", what, n, mostAtOnce)
	}
}

// changes returns how many deliveries act changes.
func changes(t *testing.T, pool *pgxpool.Pool, act func() error) int {
	t.Helper()
	mustExec(t, pool, `create table if not exists before_act (id bigint primary key, state text)`)
	mustExec(t, pool, `truncate before_act`)
	mustExec(t, pool, `insert into before_act select id, state from deliveries`)
	if err := act(); err != nil {
		t.Fatal(err)
	}
	return count(t, pool, `select count(*) from deliveries d left join before_act b using (id) where b.id is null or d.state <> b.state`)
}

// settleAll lets workers move deliveries until none is left, of which some die.
func settleAll(t *testing.T, store *postgres.DB, pool *pgxpool.Pool) {
	t.Helper()
	if n := changes(t, pool, func() error { _, err := store.Endpoints.Settle(t.Context()); return err }); n > mostAtOnce {
		t.Errorf("one portion changes %d deliveries, want %d at most", n, mostAtOnce)
	}
	n := 0
	eventually.True(t, "all is moved", func() bool {
		for more := true; more; n++ {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if n%10 == 0 {
				ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
			}
			left, err := store.Endpoints.Settle(ctx)
			died := ctx.Err() != nil
			cancel()
			if err != nil && !died {
				t.Fatal(err)
			}
			more = left || died
		}
		return count(t, pool, `
			select count(*) from deliveries d left join webhook_endpoints e on e.id::text = d.target
			where d.state in ('held', 'waiting') and (e.id is null or e.releasing or e.held_cancelled_at is not null
			  or (e.state = 'enabled') = (d.state = 'held'))`) == 0
	})
}

// A recovery of as many deliveries as an endpoint may have, and of as many events that it
// was never sent, is short transactions. It is finished whenever a worker dies in between,
// and what fails again since is left alone.
func TestManyAreRecoveredInPortions(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	e := endpoint(t, store, webhook.Filter{})
	const missed = 3000
	data, err := json.Marshal(created(2))
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `insert into streams (name, last_seq) values ('role:official', 0)`)
	mustExec(t, pool, `
		insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at)
		select (select id from streams), n, (lpad(to_hex($2::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
			'missed ' || n, 'report.created', gen_random_uuid(), 1, $1, now() - interval '1 hour'
		from generate_series(1, $3) n`, data, time.Now().Add(-time.Hour).UnixMilli(), missed)
	mustExec(t, pool, `
		insert into deliveries (channel, lane, target, message_id, kind, report_id, report_version, body, state, created_at, due_at, not_after, done_at)
		select 'webhook', $1, $1, 'ended ' || n, 'report.created', gen_random_uuid(), 1, '{}',
			case when n % 2 = 0 then 'dead' else 'cancelled' end, at, at, at + interval '7 days', at
		from generate_series(1, $2) n, lateral (select now() - interval '1 hour' as at) a`, e.ID.String(), webhook.MaxHeld)
	window := webhook.Window{Since: time.Now().Add(-2 * time.Hour), Until: time.Now()}
	recovery := func() error {
		want := webhook.Recovery{Resent: webhook.MaxHeld, Created: missed}
		got, err := store.Deliveries.Recover(t.Context(), "pavel", e.ID, window, false)
		if got != want {
			t.Errorf("recovered %+v, want %+v", got, want)
		}
		return err
	}
	wantShort(t, pool, "recover", recovery)
	for range 3 {
		wantShort(t, pool, "a worker", func() error { _, err := store.Endpoints.Settle(t.Context()); return err })
	}
	mustExec(t, pool, `update deliveries set state = 'dead', done_at = clock_timestamp() where id = (select id from deliveries where state = 'waiting' limit 1)`)
	// The rest takes a minute, and fewer are moved in the same way.
	mustExec(t, pool, `
		delete from deliveries where state in ('dead', 'cancelled') and done_at < now() - interval '1 minute'
		  and id > (select min(id) + 5000 from deliveries)`)
	want := count(t, pool, `select count(*) from deliveries`) + missed
	if _, err := store.Endpoints.Disable(t.Context(), "pavel", e.ID); err != nil { // it waits until the endpoint is enabled
		t.Fatal(err)
	}
	settleAll(t, store, pool)
	if got := count(t, pool, `select count(*) from webhook_recoveries`); got != 1 {
		t.Errorf("%d recoveries wait while the endpoint is disabled, want 1", got)
	}
	if _, err := store.Endpoints.Enable(t.Context(), "pavel", e.ID, true); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "all is recovered", func() bool {
		for range 5 {
			wantShort(t, pool, "a worker", func() error { _, err := store.Endpoints.Settle(t.Context()); return err })
		}
		return count(t, pool, `select count(*) from webhook_recoveries`) == 0
	})
	settleAll(t, store, pool)
	if got, want := states(t, pool, e), fmt.Sprintf("dead:1 waiting:%d", want-1); got != want {
		t.Errorf("recovered, the deliveries are %s, want %s", got, want)
	}
}
