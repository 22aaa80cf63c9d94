package pgpool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A server that answers and refuses changes is noticed, for whatever reason it
// does, and so is its repair.
func TestWritesAreProbed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, break_, repair string
		want                 string // in the error
	}{
		{"a right", `revoke insert on deliveries from %role%`, `grant insert on deliveries to %role%`, "insert on deliveries"},
		{"all rights to write", `revoke insert, update, delete on all tables in schema public from %role%`,
			`grant insert, update, delete on all tables in schema public to %role%`, "42501"},
		{"a right to read", `revoke select on contacts from %role%`, `grant select on contacts to %role%`, "select on contacts"},
		{"the schema", `revoke usage on schema public from public; revoke usage on schema public from %role%`,
			`grant usage on schema public to public`, "42P01"},
		{"a table", `alter table follows rename to follows_old`, `alter table follows_old rename to follows`, "42P01"},
		{"a sequence at its end", `select setval('deliveries_id_seq', 9223372036854775807)`,
			`select setval('deliveries_id_seq', 1)`, "deliveries_id_seq is at its end"},
		{"a sequence far behind", `insert into mail_bounces (id, delivery_id, lane, code, hard) overriding system value values (900000000000, 1, 'a', '5.1.1', true)`,
			`delete from mail_bounces`, "select setval('mail_bounces_id_seq'"},
		{"read-only", `alter role %role% set default_transaction_read_only = on`,
			`alter role %role% reset default_transaction_read_only`, "read-only"},
		{"another schema", `alter role %role% set search_path = nowhere`, `alter role %role% reset search_path`, "42P01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			owner, pool, role := withRole(t)
			writes := newWrites(t, pool)
			if err := writes.Probe(t.Context()); err != nil {
				t.Fatalf("before anything is broken: %v", err)
			}
			exec := func(sql string) {
				t.Helper()
				if _, err := owner.Exec(t.Context(), strings.ReplaceAll(sql, "%role%", role)); err != nil {
					t.Fatal(err)
				}
				pool.Reset() // a setting of the role holds for new connections
			}
			exec(tt.break_)
			text := func() string {
				err := newWrites(t, pool).Probe(t.Context())
				if err == nil {
					return ""
				}
				return err.Error() + " " + pgpool.Describe(err)
			}
			if got := text(); !strings.Contains(got, tt.want) {
				t.Errorf("broken, the probe says %q, want %q in it", got, tt.want)
			}
			exec(tt.repair)
			if got := text(); got != "" {
				t.Errorf("repaired, the probe says %q", got)
			}
		})
	}
}

// A full disk refuses nearly every change, and no lock.
func TestFullDiskIsProbed(t *testing.T) {
	t.Parallel()
	server, dir := pgtest.StartServerOnSmallDisk(t, 400)
	pool := open(t, server.Create(migrations.Notification))
	if err := newWrites(t, pool).Probe(t.Context()); err != nil {
		t.Fatalf("with room on the disk: %v", err)
	}
	for range 3 {
		rest, err := os.Create(filepath.Join(dir, "rest"))
		if err != nil {
			t.Fatal(err)
		}
		page := make([]byte, 4096)
		for err == nil {
			_, err = rest.Write(page)
		}
		if err := newWrites(t, pool).Probe(t.Context()); err == nil || !strings.Contains(pgpool.Describe(err), "53100") {
			t.Errorf("with a full disk the probe says %v", err)
		}
		if err := errors.Join(rest.Close(), os.Remove(rest.Name())); err != nil {
			t.Fatal(err)
		}
		if err := newWrites(t, pool).Probe(t.Context()); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
}

// A table that somebody has locked takes no change.
func TestLockedTableIsProbed(t *testing.T) {
	t.Parallel()
	owner, pool, _ := withRole(t)
	tx, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table streams`); err != nil {
		t.Fatal(err)
	}
	writes := newWrites(t, pool)
	if got := pgpool.Classify(writes.Probe(t.Context())); got != pgpool.Busy {
		t.Errorf("class %q, want %q", got, pgpool.Busy)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the lock is gone", func() bool { return writes.Probe(t.Context()) == nil })
}

// A sequence that is behind its table is advanced, by any number of replicas.
func TestSequencesAreAdvanced(t *testing.T) {
	t.Parallel()
	owner, pool, _ := withRole(t)
	if _, err := owner.Exec(t.Context(), `
		insert into deliveries (id, channel, lane, target, message_id, kind, body) overriding system value
		select n, 'webhook', 'a', 'a', n::text, 'k', '' from generate_series(1, 3000) n`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 4 {
		go func() { done <- newWrites(t, pool).Probe(t.Context()) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var id int64
	err := pool.QueryRow(t.Context(), `
		insert into deliveries (channel, lane, target, message_id, kind, body) values ('webhook', 'a', 'a', 'new', 'k', '') returning id`).Scan(&id)
	if err != nil || id <= 3000 {
		t.Errorf("the next delivery has number %d (error %v), want one above 3000", id, err)
	}
}

// One that moves while it is looked at is not behind: nothing is logged, and no
// number is passed over.
func TestSequenceThatMovesIsNotBehind(t *testing.T) {
	t.Parallel()
	_, pool, _ := withRole(t)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for ctx.Err() == nil {
				_, _ = pool.Exec(ctx, `insert into deliveries (channel, lane, target, message_id, kind, body) values ('webhook', 'a', 'a', gen_random_uuid(), 'k', '')`)
			}
		})
	}
	var logged strings.Builder
	writes := newWritesWithLog(t, pool, zerolog.New(&logged))
	for range 200 {
		if err := writes.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	writers.Wait()
	if logged.Len() > 0 {
		t.Errorf("logged %.300s", logged.String())
	}
}

func newWrites(t *testing.T, pool *pgxpool.Pool) *pgpool.Writes {
	t.Helper()
	return newWritesWithLog(t, pool, zerolog.Nop())
}

func newWritesWithLog(t *testing.T, pool *pgxpool.Pool, log zerolog.Logger) *pgpool.Writes {
	t.Helper()
	tables, err := migrations.Tables(migrations.Notification)
	if err != nil {
		t.Fatal(err)
	}
	return pgpool.NewWrites(pool, tables, log)
}

// withRole returns a database with the rights that deploy gives to a service.
func withRole(t *testing.T) (owner, pool *pgxpool.Pool, role string) {
	t.Helper()
	owner = pgtest.Notification(t)
	role = "writes_" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "_")
	for _, sql := range []string{
		`create role ` + role + ` login password 'secret'`,
		`grant usage on schema public to ` + role,
		`grant select, insert, update, delete on all tables in schema public to ` + role,
		`grant usage, select on all sequences in schema public to ` + role,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cfg := owner.Config().Copy()
	cfg.ConnConfig.User, cfg.ConnConfig.Password = role, "secret"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		// The test's own context has ended.
		_, _ = owner.Exec(context.Background(), `drop owned by `+role)
		_, _ = owner.Exec(context.Background(), `drop role `+role)
	})
	return owner, pool, role
}
