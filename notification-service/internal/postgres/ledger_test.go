package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
)

const channel = "webhook"

// An outcome that is recorded again, because nobody knows whether the commit
// succeeded, changes nothing: neither the attempts nor the place in the schedule.
func TestRecordTwice(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{}).Ledger
	mustExec(t, pool, `insert into deliveries (channel, lane, target, message_id, kind, body) values ('webhook', 'a', 'a', 'm', 'k', '')`)
	claimed, err := store.Claim(t.Context(), channel, []ledger.Claim{{Lane: "a", Limit: 1}}, nil)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d, error %v", len(claimed), err)
	}
	failed := ledger.Outcome{
		ID: claimed[0].ID, State: ledger.Waiting, Delay: time.Hour, Sent: true, Retried: true,
		Answer: ledger.Answer{Verdict: ledger.Failed, Status: 500, Class: "5xx", At: time.Now()},
	}
	for range 2 {
		if err := store.Record(t.Context(), channel, uuid.New(), []ledger.Outcome{failed}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var attempts, retries, logged int
	err = pool.QueryRow(t.Context(), `select attempts, retries, (select count(*) from delivery_attempts) from deliveries`).Scan(&attempts, &retries, &logged)
	if err != nil || attempts != 1 || retries != 1 || logged != 1 {
		t.Errorf("%d attempts, %d retries, %d in the log (error %v); want one each", attempts, retries, logged, err)
	}
	if again, err := store.Claim(t.Context(), channel, []ledger.Claim{{Lane: "a", Limit: 1}}, nil); err != nil || len(again) != 0 {
		t.Errorf("claimed %d before they are due (error %v)", len(again), err)
	}
}

// An attempt that ends while its delivery was held or cancelled: a delivery that
// arrived is done, a failed one stays held, and a cancelled one stays cancelled.
func TestRecordOfWithdrawn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{}).Ledger
	mustExec(t, pool, `insert into deliveries (channel, lane, target, message_id, kind, body, state) values
		('webhook', 'a', 'a', 'arrived', 'k', '', 'held'), ('webhook', 'a', 'a', 'failed', 'k', '', 'held'), ('webhook', 'a', 'a', 'cancelled', 'k', '', 'cancelled')`)
	rows, err := pool.Query(t.Context(), `select id from deliveries order by id`)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []ledger.Outcome
	for _, state := range []ledger.State{ledger.Done, ledger.Waiting, ledger.Waiting} {
		if !rows.Next() {
			t.Fatal("too few rows")
		}
		o := ledger.Outcome{State: state, Sent: true, Answer: ledger.Answer{At: time.Now()}}
		if err := rows.Scan(&o.ID); err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, o)
	}
	rows.Close()
	if err := store.Record(t.Context(), channel, uuid.New(), outcomes, nil); err != nil {
		t.Fatal(err)
	}
	var states []string
	if err := pool.QueryRow(t.Context(), `select array_agg(state order by id) from deliveries`).Scan(&states); err != nil {
		t.Fatal(err)
	}
	if want := []string{"done", "held", "cancelled"}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
}

// A lane is one worker's until its lease ends; nobody else writes to it.
func TestLeases(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{}).Ledger
	one, other := uuid.New(), uuid.New()
	lease := func(owner uuid.UUID, want ...string) []ledger.LeasedLane {
		t.Helper()
		leased, err := store.Lease(t.Context(), channel, owner, []string{"a", "b"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range leased {
			names = append(names, l.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("leased %v, want %v", names, want)
		}
		return leased
	}
	lease(one, "a", "b")
	lease(other)
	lease(one, "a", "b") // again
	state := ledger.LaneState{Name: "a", Rate: 2.5, Failures: 6, Failing: true, OpenFor: time.Minute, Failed: true}
	for _, owner := range []uuid.UUID{one, other} {
		if err := store.Record(t.Context(), channel, owner, nil, []ledger.LaneState{state}); err != nil {
			t.Fatal(err)
		}
		state.Failures = 100 // by the other, who may not
	}
	if err := store.Release(t.Context(), channel, one, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	leased := lease(other, "a")[0]
	if leased.Failures != 6 || leased.Rate != 2.5 || leased.OpenFor < 50*time.Second || leased.FailingFor <= 0 {
		t.Errorf("the lane goes on as %+v, want what its owner wrote", leased)
	}
	mustExec(t, pool, `update lanes set lease_until = now() - interval '1 second' where lane = 'b'`)
	lease(other, "a", "b")
}

// Due lanes are those in which a waiting delivery is due, whatever else is there.
func TestDueLanes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{}).Ledger
	mustExec(t, pool, `insert into deliveries (channel, lane, target, message_id, kind, body, state, due_at)
		select case when n % 7 = 0 then 'email' else 'webhook' end, 'lane ' || n % 50, 'a', 'm' || n, 'k', '',
		  (array['waiting', 'held', 'done', 'dead'])[1 + n % 4], now() + (n % 3 - 1) * interval '1 hour'
		from generate_series(1, 3000) n where n % 50 % 5 <> 1`)
	var want []string
	err := pool.QueryRow(t.Context(), `select array_agg(distinct lane) from deliveries
		where channel = 'webhook' and state = 'waiting' and due_at <= now()`).Scan(&want)
	if err != nil || len(want) == 0 {
		t.Fatalf("%d lanes, error %v", len(want), err)
	}
	got, err := store.DueLanes(t.Context(), channel)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("due lanes %v, want %v", got, want)
	}
}

// Deliveries that came to an end long ago go with their attempts, in pieces; no
// other does.
func TestOldDeliveriesGo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{})
	mustExec(t, pool, `insert into deliveries (channel, lane, target, message_id, kind, body, state, done_at)
		select 'webhook', 'a', 'a', 'old ' || n, 'k', '', 'done', now() - interval '31 days' from generate_series(1, 6000) n`)
	mustExec(t, pool, `insert into deliveries (channel, lane, target, message_id, kind, body, state, created_at, done_at) values
		('webhook', 'a', 'a', 'young', 'k', '', 'dead', now() - interval '40 days', now() - interval '29 days'),
		('webhook', 'a', 'a', 'waits', 'k', '', 'waiting', now() - interval '40 days', null)`)
	mustExec(t, pool, `insert into delivery_attempts (delivery_id, n, at, duration_ms, class) select id, 1, now(), 1, '2xx' from deliveries`)
	pieces := 0
	for more := true; more; pieces++ {
		var err error
		if more, err = store.Deliveries.Upkeep(t.Context(), 30*24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	var deliveries, attempts int
	err := pool.QueryRow(t.Context(), `select count(*), (select count(*) from delivery_attempts) from deliveries where message_id in ('young', 'waits')`).
		Scan(&deliveries, &attempts)
	if err != nil || deliveries != 2 || attempts != 2 || pieces != 2 {
		t.Errorf("%d deliveries and %d attempts are left after %d pieces (error %v), want 2, 2 and 2", deliveries, attempts, pieces, err)
	}
}
