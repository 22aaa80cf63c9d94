// Package migrations holds the schema of each service's database, applies it,
// and tells whether a database has it. The files are embedded, so that one
// binary carries them.
//
// A migration only adds, so that the version before it goes on working beside
// it: services are replaced one by one after their database. Each file is one
// transaction, and has no begin or commit of its own: what fails leaves nothing.
package migrations

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

//go:embed report/*.sql notification/*.sql
var files embed.FS

// A Database is one of the two databases; its value names the folder.
type Database string

// The databases, each owned by the service of the same name.
const (
	Report       Database = "report"
	Notification Database = "notification"
)

// Files returns the migration files of db, for those who compare or list them.
func Files(db Database) (fs.FS, error) { return fs.Sub(files, string(db)) }

// Up brings the database at url to the newest version. Several may call it at
// once: an advisory lock lets one work while the others wait and then find
// nothing to do. After a migration that the server refused, as it does one that
// waits too long for a lock, the database has the version before, and Up may be
// called again.
func Up(ctx context.Context, url string, db Database) error {
	return run(ctx, url, db, func(m *migrate.Migrate) error {
		err := m.Up()
		refused, ok := errors.AsType[database.Error](err)
		_, byServer := errors.AsType[*pgconn.PgError](refused.OrigErr)
		ofMigration := !bytes.Contains(refused.Query, []byte(migratepgx.DefaultMigrationsTable))
		if !ok || !byServer || !ofMigration {
			return err
		}
		// The version was noted before the migration began, and stays so.
		version, dirty, versionErr := m.Version()
		if versionErr != nil || !dirty {
			return errors.Join(err, versionErr)
		}
		before := int(version) - 1 // the numbers have no gap
		if before == 0 {
			before = database.NilVersion
		}
		return errors.Join(err, m.Force(before))
	})
}

// Down takes every migration back, newest first. All data of the service goes.
func Down(ctx context.Context, url string, db Database) error {
	return run(ctx, url, db, (*migrate.Migrate).Down)
}

// Version returns the version that the database stands at, 0 for an empty one.
func Version(ctx context.Context, url string, db Database) (version uint, err error) {
	err = run(ctx, url, db, func(m *migrate.Migrate) error {
		v, _, err := m.Version()
		if errors.Is(err, migrate.ErrNilVersion) {
			return nil
		}
		version = v
		return err
	})
	return version, err
}

// Newest returns the version that db has after Up.
func Newest(db Database) (uint, error) {
	ups, err := fs.Glob(files, string(db)+"/*.up.sql")
	if err != nil {
		return 0, fmt.Errorf("list %s migrations: %w", db, err)
	}
	return uint(len(ups)), nil // the numbers begin at 1 and have no gap
}

// Applied returns the version of the schema that the database behind pool has.
func Applied(ctx context.Context, pool *pgxpool.Pool) (version uint, err error) {
	if err := pool.QueryRow(ctx, "select version from schema_migrations").Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// Check returns an error unless the database behind pool has the schema that this
// program was built with, or a newer one, which may still be in the making: it
// only adds. An older one needs `migrate up`.
func Check(ctx context.Context, pool *pgxpool.Pool, db Database) error {
	want, err := Newest(db)
	if err != nil {
		return err
	}
	var version uint
	var dirty bool
	err = pool.QueryRow(ctx, "select version, dirty from schema_migrations").Scan(&version, &dirty)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == pgerrcode.UndefinedTable || errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("the %s database has no schema, must have version %d: run migrate up -database %s", db, want, db)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", err)
	case version > want:
		return nil
	case dirty:
		return fmt.Errorf("a migration of the %s database to version %d is running, or broke off; repair it by hand unless one is", db, version)
	case version < want:
		return fmt.Errorf("the %s database has schema version %d, must have %d: run migrate up -database %s", db, version, want, db)
	}
	return nil
}

// lockTimeout ends a migration that waits for a table. While it waits, every
// query of that table waits behind it; better to fail and to be run again.
const lockTimeout = "5s"

func run(ctx context.Context, url string, db Database, step func(*migrate.Migrate) error) (err error) {
	source, err := iofs.New(files, string(db))
	if err != nil {
		return fmt.Errorf("read %s migrations: %w", db, err)
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read the URL of the %s database: %w", db, err)
	}
	if cfg.RuntimeParams["lock_timeout"] == "" {
		cfg.RuntimeParams["lock_timeout"] = lockTimeout
	}
	conn := stdlib.OpenDB(*cfg)
	defer conn.Close()
	if err := conn.PingContext(ctx); err != nil { // reached at all? said before golang-migrate's own words
		return fmt.Errorf("reach %s database: %w", db, err)
	}
	var encoding string
	if err := conn.QueryRowContext(ctx, "show server_encoding").Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding of the %s database: %w", db, err)
	}
	if encoding != "UTF8" { // it could not keep every text, and later migrations need it
		return fmt.Errorf("the %s database has the encoding %s, must have UTF8: create it with `encoding 'UTF8' template template0`", db, encoding)
	}
	driver, err := migratepgx.WithInstance(conn, &migratepgx.Config{})
	if err != nil {
		return fmt.Errorf("prepare %s database: %w", db, err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return fmt.Errorf("prepare %s migrations: %w", db, err)
	}
	defer func() {
		sourceErr, driverErr := m.Close()
		err = errors.Join(err, sourceErr, driverErr)
	}()
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true }) // ends between two files, never inside one
	defer stop()
	if err := step(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("migrate %s database: %w", db, err)
	}
	return nil
}

var tableSQL = regexp.MustCompile(`(?m)^\s*(create|drop) table (?:if (?:not )?exists )?([a-z_][a-z0-9_]*)`)

// Tables returns the names of the tables that db has after Up.
func Tables(db Database) ([]string, error) {
	ups, err := fs.Glob(files, string(db)+"/*.up.sql") // in their order
	if err != nil {
		return nil, fmt.Errorf("list %s migrations: %w", db, err)
	}
	var tables []string
	for _, up := range ups {
		sql, err := fs.ReadFile(files, up)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		for _, m := range tableSQL.FindAllSubmatch(sql, -1) {
			if name := string(m[2]); string(m[1]) == "create" {
				tables = append(tables, name)
			} else {
				tables = slices.DeleteFunc(tables, func(t string) bool { return t == name })
			}
		}
	}
	return tables, nil
}
