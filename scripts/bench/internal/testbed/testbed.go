// Package testbed gives a benchmark a database and virtual hosts of its own, on
// the servers that `scripts/stack test-up` starts.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
)

var errNoServers = errors.New(`no servers: use make bench-…, or eval "$(scripts/stack test-up)" first`)

// Database makes an empty database. drop removes it, whoever is connected.
func Database(ctx context.Context) (dsn string, drop func() error, err error) {
	admin := os.Getenv("TEST_DATABASE_URL")
	if admin == "" {
		return "", nil, errNoServers
	}
	u, err := url.Parse(admin)
	if err != nil {
		return "", nil, errors.New("TEST_DATABASE_URL is not a URL")
	}
	name := "bench_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := execute(ctx, admin, "create database "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	drop = func() error {
		return execute(context.WithoutCancel(ctx), admin, "drop database "+name+" with (force)")
	}
	return u.String(), drop, nil
}

// Migrated makes a database with the schema that migrate, a program of some
// revision, has for kind: "report" or "notification". drop removes it.
func Migrated(ctx context.Context, migrate, kind string) (dsn string, drop func() error, err error) {
	if dsn, drop, err = Database(ctx); err != nil {
		return "", nil, err
	}
	up := exec.CommandContext(ctx, migrate, "up", "-database", kind)
	up.Env = append(os.Environ(), "DATABASE_URL="+dsn)
	if output, err := up.CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("migrate: %w: %s", err, output), drop())
	}
	return dsn, drop, nil
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

// Vhost makes a virtual host. drop deletes it with all that is in it.
func Vhost() (broker string, drop func() error, err error) {
	broker, management := os.Getenv("TEST_RABBITMQ_URL"), os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL")
	if broker == "" || management == "" {
		return "", nil, errNoServers
	}
	u, err := url.Parse(broker)
	if err != nil {
		return "", nil, errors.New("TEST_RABBITMQ_URL is not a URL")
	}
	m, err := url.Parse(management)
	if err != nil {
		return "", nil, errors.New("TEST_RABBITMQ_MANAGEMENT_URL is not a URL")
	}
	password, _ := m.User.Password()
	client, err := rabbithole.NewClient("http://"+m.Host, m.User.Username(), password)
	if err != nil {
		return "", nil, fmt.Errorf("management client: %w", err)
	}
	name := "bench-" + uuid.NewString()
	res, err := client.PutVhost(name, rabbithole.VhostSettings{})
	if err != nil {
		return "", nil, fmt.Errorf("make virtual host: %w", err)
	}
	_ = res.Body.Close() // its status was all that counts
	u.Path = "/" + name
	drop = func() error {
		res, err := client.DeleteVhost(name)
		if err != nil {
			return fmt.Errorf("delete virtual host: %w", err)
		}
		return res.Body.Close()
	}
	return u.String(), drop, nil
}
