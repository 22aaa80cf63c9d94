package pgpool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// An error begins with the words for the statement, whether the database refuses it or
// cannot be reached, and wraps what PostgreSQL or the pool said.
func TestStatementsAreNamed(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	var n int
	all := map[string]func(sql string) error{
		"Collect": func(sql string) error {
			_, err := pgpool.Collect(ctx, pool, "count", pgx.RowTo[int], sql)
			return err
		},
		"One": func(sql string) error {
			_, err := pgpool.One(ctx, pool, "count", pgx.ErrNoRows, pgx.RowTo[int], sql)
			return err
		},
		"ForEach": func(sql string) error {
			return pgpool.ForEach(ctx, pool, "count", []any{&n}, func() error { return nil }, sql)
		},
		"Value": func(sql string) error {
			_, err := pgpool.Value[int](ctx, pool, "count", sql)
			return err
		},
		"Exec": func(sql string) error { return pgpool.Exec(ctx, pool, "count", sql) },
	}
	for name, run := range all {
		if err := run(`select 1`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, refused := range []string{`select 1 / 0`, `no sql`} {
			err := run(refused)
			if _, ok := errors.AsType[*pgconn.PgError](err); !ok || !strings.HasPrefix(err.Error(), "count: ERROR: ") {
				t.Errorf("%s of %s: error %v, want one that begins with its words", name, refused, err)
			}
		}
	}
	pool.Close()
	for name, run := range all {
		if err := run(`select 1`); err == nil || !strings.HasPrefix(err.Error(), "count: ") || strings.Contains(err.Error(), "count: count: ") {
			t.Errorf("%s without a connection: error %v, want one that begins with its words", name, err)
		}
	}
}

// One tells a row that is not there from an error.
func TestOneOfNone(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	none := errors.New("there is none")
	if _, err := pgpool.One(ctx, pool, "count", none, pgx.RowTo[int], `select 1 where false`); err != none { //nolint:errorlint // it is not wrapped
		t.Errorf("error %v, want %v", err, none)
	}
	if n, err := pgpool.One(ctx, pool, "count", none, pgx.RowTo[int], `select 3`); err != nil || n != 3 {
		t.Errorf("%d, error %v, want 3", n, err)
	}
}
