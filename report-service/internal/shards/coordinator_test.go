package shards

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Together the shares of all members are all shards, and they differ by one at
// most.
func TestShares(t *testing.T) {
	t.Parallel()
	for members := 1; members <= 20; members++ {
		total, least, most := 0, Count, 0
		for rank := range members {
			share := membership{others: members - 1, rank: rank}.share()
			total, least, most = total+share, min(least, share), max(most, share)
		}
		if total != Count || most-least > 1 {
			t.Errorf("%d members: %d shards in shares of %d to %d", members, total, least, most)
		}
	}
}

// Members that come and go own even shares, and one that stops releases its
// shards in the same moment.
func TestEvenShares(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	var members []*member
	for _, step := range []struct{ members, least, most int }{{1, 16, 16}, {2, 8, 8}, {3, 5, 6}, {2, 8, 8}, {1, 16, 16}, {0, 0, 0}} {
		for len(members) < step.members {
			members = append(members, start(t, pool, 3*time.Second))
		}
		for len(members) > step.members {
			members[0].stop()
			members = members[1:]
		}
		eventually.True(t, "even shares", func() bool {
			total := 0
			for _, m := range members {
				n := owned(t, pool, m.id)
				if n < step.least || n > step.most || n != m.leases.Owned() {
					return false
				}
				total += n
			}
			return total == 16 || len(members) == 0
		})
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from relay_shards where owner is not null`).Scan(&left); err != nil || left != 0 {
		t.Errorf("after the last member stopped %d shards are owned (error %v), want none", left, err)
	}
}

// A shard that a stopping replica releases is acquired by another one without waiting
// for its own renewal, which is not due within this test.
func TestStopIsSucceededAtOnce(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Hour
	pool := pgtest.Report(t)
	// The second replica is among the members before it runs, which keeps its half
	// free: the first would not renew for hours.
	second := uuid.New()
	_, err := pool.Exec(t.Context(), `insert into relay_members (member, seen_until) values ($1, now() + interval '1 day')`, second)
	if err != nil {
		t.Fatal(err)
	}
	first := start(t, pool, lease)
	eventually.True(t, "half of the shards", func() bool { return owned(t, pool, first.id) == 8 })
	startAs(t, pool, second, lease)
	eventually.True(t, "the other half", func() bool { return owned(t, pool, second) == 8 })
	first.stop()
	eventually.True(t, "all shards", func() bool { return owned(t, pool, second) == 16 })
}

// A replica whose process dies is succeeded as soon as its session with the
// database ends. Its leases last for hours.
func TestDeathIsSucceededAtOnce(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Hour
	pool := pgtest.Report(t)
	process, dying := connect(t, pool), uuid.New()
	if _, err := process.Exec(t.Context(), `select pg_advisory_lock($1)`, sessionLock(dying)); err != nil {
		t.Fatal(err)
	}
	_, err := process.Exec(t.Context(), `
		with member as (
			insert into relay_members (member, seen_until, session_lock) values ($1, now() + interval '6 hours', $2)
		)
		update relay_shards set owner = $1, epoch = 1, lease_until = now() + interval '6 hours'`, dying, sessionLock(dying))
	if err != nil {
		t.Fatal(err)
	}
	successor := start(t, pool, lease)
	eventually.True(t, "the successor among the members", func() bool {
		var members int
		err := pool.QueryRow(t.Context(), `select count(*) from relay_members`).Scan(&members)
		return err == nil && members == 2
	})
	if n := owned(t, pool, successor.id); n != 0 {
		t.Errorf("the successor owns %d shards of a replica that lives", n)
	}
	if err := process.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "all shards", func() bool { return owned(t, pool, successor.id) == 16 })
}

// A replica whose session breaks has a new one at once, and keeps its shards.
func TestBrokenSessionMovesNothing(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Hour
	pool := pgtest.Report(t)
	m := start(t, pool, lease)
	eventually.True(t, "all shards", func() bool { return owned(t, pool, m.id) == 16 })
	other := start(t, pool, lease)
	sessionOf := func() (pid int32) {
		_ = pool.QueryRow(t.Context(), `
			select pid from pg_locks
			where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())
			  and classid::bigint << 32 | objid::bigint = $1`, sessionLock(m.id)).Scan(&pid) // 0 while there is none
		return pid
	}
	eventually.True(t, "a session", func() bool { return sessionOf() != 0 })
	broken := sessionOf()
	if _, err := pool.Exec(t.Context(), `select pg_terminate_backend($1)`, broken); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a new session", func() bool { pid := sessionOf(); return pid != 0 && pid != broken })
	eventually.True(t, "its shards", func() bool { return owned(t, pool, m.id)+owned(t, pool, other.id) == 16 && m.leases.Valid() })
	var epoch int64
	if err := pool.QueryRow(t.Context(), `select max(epoch) from relay_shards where owner = $1`, m.id).Scan(&epoch); err != nil || epoch != 1 {
		t.Errorf("epoch %d (error %v), want 1: another owned the shards in between", epoch, err)
	}
}

// Just after a restart of the database a replica that has connected again can die like
// any other. Who has not yet is given a moment.
func TestDeathAfterARestart(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	process, dying, late := connect(t, pool), uuid.New(), uuid.New()
	if _, err := process.Exec(t.Context(), `select pg_advisory_lock($1)`, sessionLock(dying)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{dying, late} {
		_, err := pool.Exec(t.Context(), `
			insert into relay_members (member, seen_until, session_lock) values ($1, now() + interval '6 hours', $2)`, id, sessionLock(id))
		if err != nil {
			t.Fatal(err)
		}
	}
	c := NewCoordinator(Config{Database: pool.Config().ConnConfig, ID: uuid.New(), Log: zerolog.Nop()}, NewLeases())
	if err := c.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.conn.Close(context.WithoutCancel(t.Context())) })
	c.connectedAt = time.Now().Add(time.Hour) // the moment lasts longer than this test
	look := func() bool {
		released, err := c.releaseDead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return released
	}
	if look() {
		t.Error("a replica is dead that has connected again")
	}
	if err := process.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a death", look)
	var left uuid.UUID
	if err := pool.QueryRow(t.Context(), `select member from relay_members`).Scan(&left); err != nil || left != late {
		t.Errorf("%s is left (error %v), want the one that has not connected yet", left, err)
	}
}

func connect(t *testing.T, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// A shard with a row in progress stays where it is until the row is finished.
func TestDrainBeforeRelease(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	first := start(t, pool, 3*time.Second)
	eventually.True(t, "all shards", func() bool { return len(first.leases.Active()) == 16 })
	busy := first.leases.Active()[15]
	if !first.leases.Begin(busy) {
		t.Fatal("Begin refuses a row of an active lease")
	}
	second := start(t, pool, 3*time.Second)
	eventually.True(t, "all but one of the surplus", func() bool { return owned(t, pool, second.id) == 7 })
	if first.leases.MayPublish(busy) {
		t.Error("a row of a releasing shard may be published")
	}
	first.leases.End(busy)
	eventually.True(t, "the last one", func() bool { return owned(t, pool, second.id) == 8 })
}

// Epochs only grow, so that no two owners can be confused.
func TestEpochsGrow(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	for want := int64(1); want <= 3; want++ {
		m := start(t, pool, 3*time.Second)
		eventually.True(t, "all shards", func() bool { return owned(t, pool, m.id) == 16 })
		var lowest, highest int64
		err := pool.QueryRow(t.Context(), `select min(epoch), max(epoch) from relay_shards`).Scan(&lowest, &highest)
		if err != nil || lowest != want || highest != want {
			t.Errorf("epochs %d to %d (error %v), want %d", lowest, highest, err, want)
		}
		m.stop()
	}
}

// A member is a coordinator that runs in the test's process.
type member struct {
	id     uuid.UUID
	leases *Leases
	stop   func() // waits until it has released its shards
}

// start runs a coordinator with a broker until the test ends, or until stop.
func start(t *testing.T, pool *pgxpool.Pool, lease time.Duration) *member {
	t.Helper()
	return startAs(t, pool, uuid.New(), lease)
}

func startAs(t *testing.T, pool *pgxpool.Pool, id uuid.UUID, lease time.Duration) *member {
	t.Helper()
	m := &member{id: id, leases: NewLeases()}
	c := NewCoordinator(Config{
		Database: pool.Config().ConnConfig, ID: m.id, Lease: lease, Margin: lease / 3, Log: zerolog.Nop(),
	}, m.leases)
	c.SetConnected(true)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

// owned returns how many shards a replica has under a valid lease, or -1.
func owned(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) (n int) {
	t.Helper()
	err := pool.QueryRow(context.WithoutCancel(t.Context()),
		`select count(*) from relay_shards where owner = $1 and lease_until > now()`, id).Scan(&n)
	if err != nil {
		return -1
	}
	return n
}
