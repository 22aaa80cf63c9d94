// Package testbed is the frame of every benchmark: it gives it databases, virtual
// hosts and programs of its own, on the servers that `scripts/stack test-up`
// starts, takes them away at the end, lets contestants have their turns, and prints
// the last line, which has the figures as name=value.
package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

// root is the top of the repository, for a benchmark that runs in scripts/bench.
const root = "../.."

var errNoServers = errors.New(`no servers: use make bench-…, or eval "$(scripts/stack test-up)" first`)

// A Bed is what a benchmark was given, which it need not give back.
type Bed struct {
	dir  string
	undo []func() error
}

// Main reads the command line and runs a benchmark.
func Main(run func(context.Context, *Bed) error) {
	flag.Parse()
	command.Main(func(ctx context.Context) error {
		b := &Bed{}
		err := run(ctx, b)
		for _, undo := range slices.Backward(b.undo) {
			err = errors.Join(err, undo())
		}
		return err
	})
}

// Defer has something undone at the end, however the benchmark ends: the last
// first.
func (b *Bed) Defer(undo func() error) { b.undo = append(b.undo, undo) }

// Dir returns a folder for this run.
func (b *Bed) Dir() (string, error) {
	if b.dir != "" {
		return b.dir, nil
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return "", err
	}
	b.dir = dir
	b.Defer(func() error { return os.RemoveAll(dir) })
	return dir, nil
}

// Build compiles this tree's bench/NAME of a service, whose packages this module
// may not import, and returns the program.
func (b *Bed) Build(ctx context.Context, service, name string) (string, error) {
	dir, err := b.Dir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/"+name)
	build.Dir, build.Env = filepath.Join(root, service), append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return program, nil
}

// Database makes a database with this tree's schema.
func (b *Bed) Database(ctx context.Context, of migrations.Database) (dsn string, err error) {
	if dsn, err = b.emptyDatabase(ctx); err != nil {
		return "", err
	}
	return dsn, migrations.Up(ctx, dsn, of)
}

// Migrated makes a database with the schema that migrate, a program of some
// revision, has.
func (b *Bed) Migrated(ctx context.Context, migrate string, of migrations.Database) (dsn string, err error) {
	if dsn, err = b.emptyDatabase(ctx); err != nil {
		return "", err
	}
	up := exec.CommandContext(ctx, migrate, "up", "-database", string(of))
	up.Env = append(os.Environ(), "DATABASE_URL="+dsn)
	if output, err := up.CombinedOutput(); err != nil {
		return "", fmt.Errorf("migrate: %w: %s", err, output)
	}
	return dsn, nil
}

func (b *Bed) emptyDatabase(ctx context.Context) (dsn string, err error) {
	admin := os.Getenv("TEST_DATABASE_URL")
	if admin == "" {
		return "", errNoServers
	}
	u, err := url.Parse(admin)
	if err != nil {
		return "", errors.New("TEST_DATABASE_URL is not a URL")
	}
	name := "bench_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := execute(ctx, admin, "create database "+name); err != nil {
		return "", err
	}
	b.Defer(func() error { // whoever is connected
		return execute(context.WithoutCancel(ctx), admin, "drop database "+name+" with (force)")
	})
	u.Path = "/" + name
	return u.String(), nil
}

func execute(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// Vhost makes a virtual host. drop deletes it with all that is in it, before the
// end of the run where its messages are many.
func (b *Bed) Vhost() (broker string, drop func() error, err error) {
	broker, management := os.Getenv("TEST_RABBITMQ_URL"), os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL")
	if broker == "" || management == "" {
		return "", nil, errNoServers
	}
	u, err := url.Parse(broker)
	if err != nil {
		return "", nil, errors.New("TEST_RABBITMQ_URL is not a URL")
	}
	client, err := devserver.Management(management, startTimeout)
	if err != nil {
		return "", nil, err
	}
	name := "bench-" + uuid.NewString()
	res, err := client.PutVhost(name, rabbithole.VhostSettings{})
	if err != nil {
		return "", nil, fmt.Errorf("make virtual host: %w", err)
	}
	_ = res.Body.Close() // its status was all that counts
	u.Path = "/" + name
	drop = sync.OnceValue(func() error {
		res, err := client.DeleteVhost(name)
		if err != nil {
			return fmt.Errorf("delete virtual host: %w", err)
		}
		return res.Body.Close()
	})
	b.Defer(drop)
	return u.String(), drop, nil
}
