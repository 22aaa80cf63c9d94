package pgtest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
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
	b.exec(`alter system set synchronous_standby_names = 'nobody'`)
	b.exec(`select pg_reload_conf()`)
	for { // the server takes note after the reload has returned
		committed := make(chan error, 1)
		go func() {
			_, err := b.admin.Exec(context.WithoutCancel(s.t.Context()), `select pg_logical_emit_message(true, 'pgtest', '')`)
			committed <- err
		}()
		if b.firstWaits(committed) {
			b.giveUpUntil(committed)
			return b
		}
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

// GiveUp ends the wait of those commits that wait now: what they wrote becomes
// visible, though no standby has it.
func (b *Standby) GiveUp() {
	b.server.t.Helper()
	b.exec(`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`)
}

// giveUpUntil gives up until a commit has ended: what waits at first may be
// another's.
func (b *Standby) giveUpUntil(committed <-chan error) {
	b.server.t.Helper()
	deadline := time.After(setupTimeout)
	for {
		b.GiveUp()
		select {
		case err := <-committed:
			if err != nil {
				b.server.t.Fatalf("pgtest: commit that was given up: %v", err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			b.server.t.Fatal("pgtest: a commit that was given up does not end")
		}
	}
}

// Release lets all commits end, those that wait and those to come.
func (b *Standby) Release() {
	b.server.t.Helper()
	b.exec(`alter system reset synchronous_standby_names`)
	b.exec(`select pg_reload_conf()`)
}

// firstWaits tells whether a commit waits, and not, has ended.
func (b *Standby) firstWaits(committed <-chan error) bool {
	b.server.t.Helper()
	deadline, tick := time.After(setupTimeout), time.Tick(5*time.Millisecond)
	for b.Waits() == 0 {
		select {
		case err := <-committed:
			if err != nil {
				b.server.t.Fatalf("pgtest: commit: %v", err)
			}
			return false
		case <-tick:
		case <-deadline:
			b.server.t.Fatal("pgtest: a commit neither waits for the standby nor ends")
		}
	}
	return true
}

func (b *Standby) exec(sql string) {
	b.server.t.Helper()
	if _, err := b.admin.Exec(b.server.t.Context(), sql); err != nil {
		b.server.t.Fatalf("pgtest: %s: %v", sql, err)
	}
}
