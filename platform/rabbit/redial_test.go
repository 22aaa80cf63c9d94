package rabbit_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A gate is a way to the broker that can be closed to new connections.
type gate struct {
	url  string
	open atomic.Bool
}

func newGate(t *testing.T) *gate {
	t.Helper()
	broker, err := url.Parse(rabbittest.Vhost(t))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	g, behind := &gate{}, broker.Host
	broker.Host = listener.Addr().String()
	g.url = broker.String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(conn, behind)
		}
	}()
	return g
}

func (g *gate) pass(conn net.Conn, behind string) {
	defer conn.Close()
	if !g.open.Load() {
		return
	}
	server, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
	_, _ = io.Copy(conn, server)
}

// supervise keeps a connection until the test ends, and returns what happens
// to it.
func supervise(t *testing.T, cfg rabbit.Config) (failed <-chan error, connected <-chan struct{}) {
	t.Helper()
	failures, connections := make(chan error, 100), make(chan struct{}, 100)
	cfg.Log = zerolog.Nop()
	cfg.Observe = func(s rabbit.State) {
		if s.Connected {
			connections <- struct{}{}
		} else {
			failures <- s.Cause
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = rabbit.Supervise(ctx, cfg, func(ctx context.Context, _ *amqp.Connection) error { <-ctx.Done(); return nil })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return failures, connections
}

// A connection that waits to dial again does not wait any longer once another
// one of the process has reached the broker.
func TestOneConnectionWakesTheOthers(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	failed, connected := supervise(t, rabbit.Config{URL: g.url, Name: "patient"}.WithRedial(time.Hour, time.Hour))
	receive(t, failed)
	g.open.Store(true)
	_, first := supervise(t, rabbit.Config{URL: g.url, Name: "first"})
	receive(t, first)
	receive(t, connected) // within the test's patience, which is below an hour
}

// A session that waits for another broker, or fails for reasons of its own, is left
// alone: two connections whose sessions fail must not wake each other in turn.
func TestFailingSessionsDoNotWakeEachOther(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.open.Store(true)
	var sessions atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	broken := make(chan struct{}, 100)
	for range 2 {
		go func() {
			cfg := rabbit.Config{URL: g.url, Log: zerolog.Nop(), Observe: func(s rabbit.State) {
				if !s.Connected {
					broken <- struct{}{}
				}
			}}
			ended <- rabbit.Supervise(ctx, cfg.WithRedial(time.Hour, time.Hour), func(context.Context, *amqp.Connection) error {
				sessions.Add(1)
				return io.EOF
			})
		}()
	}
	receive(t, broken)
	receive(t, broken)
	_, third := supervise(t, rabbit.Config{URL: g.url, Name: "third"})
	receive(t, third)
	cancel()
	for range 2 {
		if err := receive(t, ended); err != nil {
			t.Error(err)
		}
	}
	if got := sessions.Load(); got != 2 {
		t.Errorf("%d sessions, want one for each connection", got)
	}
}

// Messages wait for as long as a connection does, even if the broker is back.
func TestRedialIsPrompt(t *testing.T) {
	t.Parallel()
	if rabbit.LongestRedial > 5*time.Second {
		t.Errorf("the longest pause is %s, want a few seconds", rabbit.LongestRedial)
	}
}

// The gauges of all connections have one name each.
func TestConnectionMetrics(t *testing.T) {
	t.Parallel()
	g, metrics := newGate(t), prometheus.NewRegistry()
	failed, _ := supervise(t, rabbit.Config{URL: g.url, Name: "away", Metrics: metrics}.WithRedial(time.Hour, time.Hour))
	receive(t, failed)
	_, connected := supervise(t, rabbit.Config{URL: rabbittest.Vhost(t), Name: "there", Metrics: metrics})
	receive(t, connected)
	want := map[string]float64{"away": 0, "there": 1}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(metrics, "rabbitmq_client_connected", "rabbitmq_client_blocked"); n != 4 {
		t.Errorf("%d gauges, want two of each connection", n)
	}
	for _, family := range families {
		if family.GetName() != "rabbitmq_client_connected" {
			continue
		}
		for _, m := range family.GetMetric() {
			if name := m.GetLabel()[0].GetValue(); m.GetGauge().GetValue() != want[name] {
				t.Errorf("%s is shown as %v, want %v", name, m.GetGauge().GetValue(), want[name])
			}
		}
	}
}
