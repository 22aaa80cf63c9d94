package migrations_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
)

func pool(t *testing.T, db migrations.Database) *pgxpool.Pool {
	t.Helper()
	if db == migrations.Report {
		return pgtest.Report(t)
	}
	return pgtest.Notification(t)
}

// Down must take back all that up made, and up must work again after it.
func TestDownAndUpAgain(t *testing.T) {
	t.Parallel()
	for _, db := range []migrations.Database{migrations.Report, migrations.Notification} {
		t.Run(string(db), func(t *testing.T) {
			t.Parallel()
			ctx, pool := t.Context(), pool(t, db)
			url := pool.Config().ConnString()
			if err := migrations.Down(ctx, url, db); err != nil {
				t.Fatalf("Down: %v", err)
			}
			if left := relations(t, pool); len(left) > 0 {
				t.Errorf("after Down these are left: %v", left)
			}
			if err := migrations.Up(ctx, url, db); err != nil {
				t.Errorf("Up after Down: %v", err)
			}
		})
	}
}

// A database that cannot keep every text is refused before the first migration.
func TestOtherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	name := pgx.Identifier{pool.Config().ConnConfig.Database + "_latin1"}.Sanitize()
	if _, err := pool.Exec(t.Context(), `create database `+name+` encoding 'LATIN1' locale 'C' template template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = pool.Exec(context.WithoutCancel(t.Context()), `drop database `+name) })
	url := strings.Replace(pool.Config().ConnString(), "/"+pool.Config().ConnConfig.Database, "/"+pool.Config().ConnConfig.Database+"_latin1", 1)
	if err := migrations.Up(t.Context(), url, migrations.Report); err == nil || !strings.Contains(err.Error(), "has the encoding LATIN1, must have UTF8") {
		t.Errorf("Up: %v, want that the encoding must be UTF8", err)
	}
	var tables int
	other, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.QueryRow(t.Context(), `select count(*) from pg_tables where schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables (error %v), want none", tables, err)
	}
}

func TestConcurrentUpsAllSucceed(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	url := pool.Config().ConnString()
	if err := migrations.Down(ctx, url, migrations.Report); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := migrations.Up(ctx, url, migrations.Report); err != nil {
				t.Errorf("Up beside others: %v", err)
			}
		})
	}
	wg.Wait()
	if version, err := migrations.Version(ctx, url, migrations.Report); err != nil || version == 0 {
		t.Errorf("version %d, error %v; want the newest", version, err)
	}
}

func TestUnreachableServerIsNamed(t *testing.T) {
	t.Parallel()
	err := migrations.Up(context.Background(), "postgres://nobody@127.0.0.1:1/none", migrations.Report)
	if err == nil || !strings.Contains(err.Error(), "reach report database") {
		t.Errorf("Up: %v; want an error that says which database was not reached", err)
	}
}

// Every file that goes up has one that comes down, and numbers have no gap.
func TestFilesComeInPairs(t *testing.T) {
	t.Parallel()
	for _, db := range []migrations.Database{migrations.Report, migrations.Notification} {
		files, err := migrations.Files(db)
		if err != nil {
			t.Fatal(err)
		}
		ups, err := fs.Glob(files, "*.up.sql")
		if err != nil || len(ups) == 0 {
			t.Fatalf("%s: no migrations (error %v)", db, err)
		}
		for i, up := range ups {
			if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(up, want) {
				t.Errorf("%s/%s: want a name that begins with %s", db, up, want)
			}
			if _, err := fs.Stat(files, strings.Replace(up, ".up.", ".down.", 1)); err != nil {
				t.Errorf("%s/%s has no way down: %v", db, up, err)
			}
		}
	}
}

// The answer of Check decides whether a replica gets requests.
func TestCheck(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	newest, err := migrations.Newest(migrations.Report)
	if err != nil {
		t.Fatal(err)
	}
	set := func(version uint, dirty bool) {
		t.Helper()
		if _, err := pool.Exec(ctx, "update schema_migrations set version = $1, dirty = $2", version, dirty); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		err := migrations.Check(ctx, pool, migrations.Report)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check: %v; want %q", err, want)
		}
	}
	check("")
	for _, dirty := range []bool{true, false} { // the version after this one, while it is made and then
		set(newest+1, dirty)
		check("")
	}
	set(newest-1, false)
	check(fmt.Sprintf("has schema version %d, must have %d", newest-1, newest))
	set(newest, true)
	check("broke off")
	if err := migrations.Down(ctx, pool.Config().ConnString(), migrations.Report); err == nil {
		t.Fatal("Down of a dirty database: no error")
	}
	set(newest, false)
	if err := migrations.Down(ctx, pool.Config().ConnString(), migrations.Report); err != nil {
		t.Fatal(err)
	}
	check("has no schema")
}

// While a migration waits for a table, every query of that table waits, too.
func TestMigrationGivesUpOnALockedTable(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "lock table outbox_messages in access share mode"); err != nil {
		t.Fatal(err)
	}
	url := pool.Config().ConnString() + "&lock_timeout=100ms"
	if err := migrations.Down(ctx, url, migrations.Report); err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("Down beside a locked table: %v; want a lock timeout", err)
	}
}

// An operator whose migration met a locked table runs it again.
func TestRefusedMigrationCanBeRepeated(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	url := pool.Config().ConnString()
	if err := migrations.Down(ctx, url, migrations.Report); err != nil {
		t.Fatal(err)
	}
	// In the way of the second file, after the first has made the schema.
	if _, err := pool.Exec(ctx, "create table outbox_messages ()"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := migrations.Up(ctx, url, migrations.Report); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("Up: %v; want that a table already exists", err)
		}
		if version, err := migrations.Version(ctx, url, migrations.Report); err != nil || version != 1 {
			t.Errorf("version %d, error %v; want 1", version, err)
		}
	}
	if _, err := pool.Exec(ctx, "drop table outbox_messages"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, url, migrations.Report); err != nil {
		t.Errorf("Up again: %v", err)
	}
	if err := migrations.Check(ctx, pool, migrations.Report); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// The tables that are named are those that the migrations leave.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, db := range []migrations.Database{migrations.Report, migrations.Notification} {
		tables, err := migrations.Tables(db)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		err = pool(t, db).QueryRow(t.Context(), `
			select array_agg(relname::text order by relname) from pg_class
			where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> 'schema_migrations'`).Scan(&want)
		if slices.Sort(tables); err != nil || !slices.Equal(tables, want) {
			t.Errorf("%s: %v, want %v (error %v)", db, tables, want, err)
		}
	}
}

func relations(t *testing.T, pool *pgxpool.Pool) (names []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select relname from pg_class
		where relnamespace = 'public'::regnamespace and relname not like 'schema_migrations%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}
