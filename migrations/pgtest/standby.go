package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A Standby is one that is missing: each commit on the server waits for it,
// until it is released or given up.
type Standby struct {
	server *Server
	admin  *pgxpool.Pool
}

// AwaitStandby makes the server replicate synchronously, to a standby that does
// not exist, and returns once commits wait for it.
func (s *Server) AwaitStandby() *Standby {
	s.t.Helper()
	b := &Standby{server: s, admin: open(s.t, s.URL("postgres"))}
	mustExec(b.server.t, b.admin, `alter system set synchronous_standby_names = 'nobody'`)
	mustExec(b.server.t, b.admin, `select pg_reload_conf()`)
	for { // the server takes note after the reload has returned
		committed := make(chan error, 1)
		go func() {
			_, err := b.admin.Exec(context.WithoutCancel(s.t.Context()), `select pg_logical_emit_message(true, 'pgtest', '')`)
			committed <- err
		}()
		waits := false
		eventually.True(s.t, "pgtest: a commit waits for the standby, or ends", func() bool {
			waits = b.Waits() > 0
			return waits || b.ended(committed)
		})
		if waits {
			eventually.True(s.t, "pgtest: a commit that was given up ends", func() bool {
				b.GiveUp() // each time: the first commit that waits may be another's
				return b.ended(committed)
			})
			return b
		}
	}
}

// Follow makes a standby of the server, whose commits wait for it from now on.
// It is killed when t ends.
func (s *Server) Follow() *Server {
	s.t.Helper()
	standby := newServer(s.t, devserver.Postgres{})
	if err := standby.own.PrepareStandby(s.t.Context(), &s.own); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.t.Cleanup(standby.Kill)
	standby.Start()
	admin := open(s.t, s.URL("postgres"))
	mustExec(s.t, admin, `alter system set synchronous_standby_names = '*'`)
	mustExec(s.t, admin, `select pg_reload_conf()`)
	eventually.True(s.t, "the standby follows", func() (synchronous bool) {
		err := admin.QueryRow(s.t.Context(), `select exists (select from pg_stat_replication where sync_state = 'sync')`).Scan(&synchronous)
		if err != nil {
			s.t.Fatalf("pgtest: ask who follows: %v", err)
		}
		return synchronous
	})
	return standby
}

// Promote makes a standby the primary, which itself has no standby then.
func (s *Server) Promote() {
	s.t.Helper()
	admin, err := pgx.Connect(s.t.Context(), s.URL("postgres"))
	if err != nil {
		s.t.Fatalf("pgtest: connect: %v", err)
	}
	defer admin.Close(s.t.Context())
	var promoted bool
	if err := admin.QueryRow(s.t.Context(), `select pg_promote()`).Scan(&promoted); err != nil || !promoted {
		s.t.Fatalf("pgtest: promoted %v (error %v)", promoted, err)
	}
}

// Waits returns how many commits wait for the standby.
func (b *Standby) Waits() (n int) {
	b.server.t.Helper()
	err := b.admin.QueryRow(b.server.t.Context(), `select count(*) from pg_stat_activity where wait_event = 'SyncRep'`).Scan(&n)
	if err != nil {
		b.server.t.Fatalf("pgtest: count commits that wait: %v", err)
	}
	return n
}

// GiveUp ends the wait of those commits that wait now: their rows become visible,
// though no standby has them.
func (b *Standby) GiveUp() {
	b.server.t.Helper()
	mustExec(b.server.t, b.admin, `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`)
}

// ended reports whether a commit has ended.
func (b *Standby) ended(committed <-chan error) bool {
	b.server.t.Helper()
	select {
	case err := <-committed:
		if err != nil {
			b.server.t.Fatalf("pgtest: commit: %v", err)
		}
		return true
	default:
		return false
	}
}

// Release lets all commits end, those that wait and those to come.
func (b *Standby) Release() {
	b.server.t.Helper()
	mustExec(b.server.t, b.admin, `alter system reset synchronous_standby_names`)
	mustExec(b.server.t, b.admin, `select pg_reload_conf()`)
}

func mustExec(t testing.TB, admin *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := admin.Exec(t.Context(), sql); err != nil {
		t.Fatalf("pgtest: %s: %v", sql, err)
	}
}
