package relay_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// The environment that makes the test binary a relay in a process of its own,
// which a test may kill or pause.
const (
	childDatabase = "RELAY_TEST_CHILD_DATABASE"
	childBroker   = "RELAY_TEST_CHILD_BROKER"
	childLease    = "RELAY_TEST_CHILD_LEASE"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDatabase) == "" {
		flag.Parse()
		_ = flag.Set("test.parallel", "8") // the tests wait far more than they compute
		os.Exit(m.Run())
	}
	if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv(childDatabase))
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg := relay.Defaults()
	if lease, err := time.ParseDuration(os.Getenv(childLease)); err == nil {
		cfg.Lease = lease
	}
	r := relay.New(cfg, relay.Dependencies{
		Pool: pool, Keys: testKeys, RabbitURL: os.Getenv(childBroker),
		Log: zerolog.New(os.Stderr).With().Timestamp().Logger(), Metrics: prometheus.NewRegistry(),
	})
	r.ManifestsEvery(testManifests, testSettled)
	return r.Run(ctx)
}

// A child is a relay in a process of its own.
type child struct {
	*exec.Cmd

	log *bytes.Buffer
}

func startChild(t testing.TB, database, broker string, lease time.Duration) child {
	t.Helper()
	c := child{exec.Command(os.Args[0]), new(bytes.Buffer)}
	c.Env = append(os.Environ(), childDatabase+"="+database, childBroker+"="+broker, childLease+"="+lease.String())
	c.Stderr = c.log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatalf("start relay process: %v", err)
	}
	t.Cleanup(c.kill)
	return c
}

// kill ends the process as a power cut would, and waits for it.
func (c child) kill() {
	_ = c.Process.Kill() // it may have ended before
	_ = c.Wait()
}

func (c child) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatalf("signal %v: %v\n%s", s, err, c.log)
	}
}
