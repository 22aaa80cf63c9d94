// Package migrations holds the schema of each service's database and applies
// it. The files are embedded, so that one binary carries them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/jackc/pgx/v5/stdlib" // the "pgx" driver of database/sql
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
// nothing to do.
func Up(ctx context.Context, url string, db Database) error {
	return run(ctx, url, db, (*migrate.Migrate).Up)
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

func run(ctx context.Context, url string, db Database, step func(*migrate.Migrate) error) (err error) {
	source, err := iofs.New(files, string(db))
	if err != nil {
		return fmt.Errorf("read %s migrations: %w", db, err)
	}
	conn, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open %s database: %w", db, err)
	}
	defer conn.Close()
	if err := conn.PingContext(ctx); err != nil { // reached at all? said before golang-migrate's own words
		return fmt.Errorf("reach %s database: %w", db, err)
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
