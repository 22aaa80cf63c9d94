package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/restore"
)

// A copy of a database is recognised, once, and its streams start over; those of the
// database itself do not.
func TestRestoreIsNoticed(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustApply(t, store, message(ann.Own()), message(notification.Officials))
	await := func(p *pgxpool.Pool) {
		t.Helper()
		w := restore.New(p, postgres.New(p, postgres.Options{}).Streams.StartOver, zerolog.Nop())
		if w.Probe(t.Context()) == nil {
			t.Error("the service may go on before the database was looked at")
		}
		if err := w.Await(t.Context()); err != nil || w.Probe(t.Context()) != nil {
			t.Fatalf("Await: %v", err)
		}
	}
	epochs := func(p *pgxpool.Pool) (all string) {
		t.Helper()
		if err := p.QueryRow(t.Context(), `select string_agg(epoch, ' ' order by name) from streams`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := epochs(pool)
	await(pool)
	await(pool)
	if got := epochs(pool); got != before {
		t.Errorf("the epochs of a database that is itself are %s, want %s", got, before)
	}

	// A template is as good as pg_restore; it keeps the numbers of the tables.
	u, err := url.Parse(pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	pool.Reset() // a database in use cannot be a template
	mustExec(t, admin, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '`+name+`'`)
	mustExec(t, admin, `create database `+name+`_copy template `+name)
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), `drop database `+name+`_copy with (force)`); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name + "_copy"
	copied, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(copied.Close)
	var both sync.WaitGroup
	for range 2 { // replicas that start together
		both.Go(func() { await(copied) })
	}
	both.Wait()
	restored := epochs(copied)
	for _, epoch := range strings.Fields(before) {
		if strings.Contains(restored, epoch) {
			t.Errorf("the epochs of the copy are %s, want others than %s", restored, before)
		}
	}
	await(copied)
	if got := epochs(copied); got != restored {
		t.Errorf("the epochs changed twice for one restore")
	}

	// And when it is said.
	n, err := restore.New(pool, store.Streams.StartOver, zerolog.Nop()).Declare(t.Context())
	if err != nil || n != 1 || epochs(pool) == before {
		t.Errorf("Declare: restore %d, error %v, epochs %s", n, err, epochs(pool))
	}
}

// A restore that broke off is brought to its end by the next start.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustApply(t, store, message(ann.Own()))
	mustExec(t, pool, `insert into database_origin (origin, restores, restoring) values ('elsewhere', 7, false)`)
	died := errors.New("died")
	dies := restore.New(pool, func(context.Context, int) error { return died }, zerolog.Nop())
	if _, err := dies.Declare(t.Context()); !errors.Is(err, died) {
		t.Fatalf("Declare: %v, want that it died", err)
	}
	var epoch, after string
	read := func(dst *string) {
		if err := pool.QueryRow(t.Context(), `select epoch from streams`).Scan(dst); err != nil {
			t.Fatal(err)
		}
	}
	read(&epoch)
	if err := restore.New(pool, store.Streams.StartOver, zerolog.Nop()).Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	read(&after)
	if after == epoch {
		t.Error("the epoch is the one of before")
	}
	if n := count(t, pool, `select restores from database_origin where not restoring`); n != 8 {
		t.Errorf("%d restores, want 8", n)
	}
}
