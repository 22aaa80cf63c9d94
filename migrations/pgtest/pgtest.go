// Package pgtest gives each test a migrated database of its own on a real
// PostgreSQL server.
//
// The server is the one that TEST_DATABASE_URL names, as a superuser; the
// project's test command starts it. A database is copied from a template that
// is migrated once per schema, which takes some tens of milliseconds.
package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
)

// setupTimeout is long because a loaded machine copies slowly; it only ever
// ends a test that could not have worked.
const setupTimeout = 15 * time.Minute

// templateLock is the advisory lock under which a template is made: test
// binaries of several packages start at once.
const templateLock = 0x63697479

// Report returns a pool on a fresh reports database, dropped when t ends.
// The pool's ConnString is the URL of the database.
func Report(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, Create(t, sharedURL(t), migrations.Report))
}

// Notification returns a pool on a fresh notifications database, dropped when
// t ends.
func Notification(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, Create(t, sharedURL(t), migrations.Notification))
}

// Create makes a migrated database on the server that admin reaches as a
// superuser, and returns its URL. It is dropped when t ends.
func Create(t testing.TB, admin string, db migrations.Database) string {
	t.Helper()
	address, name := create(t, admin, db)
	t.Cleanup(func() { drop(t, admin, name) })
	return address
}

func create(t testing.TB, admin string, db migrations.Database) (address, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), setupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatalf("pgtest: connect: %v", err)
	}
	defer conn.Close(ctx)
	template, err := ensureTemplate(ctx, t, conn, admin, db)
	if err != nil {
		t.Fatalf("pgtest: template: %v", err)
	}
	name = "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := conn.Exec(ctx, fmt.Sprintf(`create database %s template %s`, name, template)); err != nil {
		t.Fatalf("pgtest: create database: %v", err)
	}
	return withDatabase(t, admin, name), name
}

func sharedURL(t testing.TB) string {
	t.Helper()
	admin := os.Getenv("TEST_DATABASE_URL")
	if admin == "" {
		t.Fatal("TEST_DATABASE_URL is not set: run `make test`, or `eval \"$(scripts/stack test-up)\"` before go test")
	}
	return admin
}

// open returns a small pool: many tests share the server's connections.
func open(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), dsn)
	if err != nil {
		t.Fatalf("pgtest: open pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// ensureTemplate returns the template of db's present schema, made by the first
// process that asks. Its name carries the schema's hash: another schema is another
// template.
func ensureTemplate(ctx context.Context, t testing.TB, conn *pgx.Conn, admin string, db migrations.Database) (string, error) {
	t.Helper()
	hash, err := schemaHash(db)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("template_%s_%s", db, hash)
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, templateLock); err != nil {
		return "", fmt.Errorf("lock: %w", err)
	}
	defer conn.Exec(ctx, `select pg_advisory_unlock($1)`, templateLock) //nolint:errcheck // closing the connection unlocks too

	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	// Migrated under another name and renamed, so that a half-made template is
	// never taken for a whole one.
	making := name + "_making"
	for _, statement := range []string{
		`drop database if exists ` + making + ` with (force)`,
		`create database ` + making,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", fmt.Errorf("make: %w", err)
		}
	}
	if err := migrations.Up(ctx, withDatabase(t, admin, making), db); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, `alter database `+making+` rename to `+name); err != nil {
		return "", fmt.Errorf("rename: %w", err)
	}
	return name, nil
}

func schemaHash(db migrations.Database) (string, error) {
	files, err := migrations.Files(db)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)[:8]), err
}

func drop(t testing.TB, admin, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), setupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, `drop database if exists `+name+` with (force)`)
	}
	if err != nil {
		t.Logf("pgtest: drop database: %v", err)
	}
}

func withDatabase(t testing.TB, admin, name string) string {
	t.Helper()
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("pgtest: parse server url: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}
