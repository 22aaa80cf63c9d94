package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// TestMain lets the test binary be the process that is killed: with
// CRASH_POINT set it is a consumer that kills itself there.
func TestMain(m *testing.M) {
	if os.Getenv("CRASH_POINT") == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("CRASH_DATABASE"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if os.Getenv("CRASH_POINT") == "order" {
		p, err := consumertest.Assemble(os.Getenv("CRASH_RABBITMQ"), pool, zerolog.Nop(), prometheus.NewRegistry(),
			consumertest.WithEffect(unreliableEffect{showing(pool), pool}), consumertest.WithConfig(func(c *consumer.Config) { c.Workers = 4 }))
		if err != nil {
			return err
		}
		return p.Run(ctx)
	}
	k := &crashingEffect{Effect: consumertest.Effect(pool), point: os.Getenv("CRASH_POINT"), id: os.Getenv("CRASH_ID"), flag: os.Getenv("CRASH_FLAG"), enough: make(chan struct{})}
	p, err := consumertest.Assemble(os.Getenv("CRASH_RABBITMQ"), pool, zerolog.Nop(), prometheus.NewRegistry(),
		consumertest.WithEffect(k), consumertest.WithForwarder(func(f consumer.Forwarder) consumer.Forwarder { return crashingForwarder{f, k} }))
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// A crashingEffect is an effect that kills its process.
type crashingEffect struct {
	consumer.Effect
	point, id, flag string
	neighbours      atomic.Int64 // that have had their effect
	once            sync.Once
	enough          chan struct{} // closed when they are so many that earlier ones were acknowledged
}

func (k *crashingEffect) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	concerned := has(batch, k.id)
	switch {
	case concerned && k.point == "always":
		die()
	case concerned && k.point == "before commit":
		k.dieOnce()
	case concerned && strings.HasSuffix(k.point, "confirm") && !k.died():
		return 0, errTransient
	}
	applied, err := k.Effect.Apply(ctx, queue, batch)
	if concerned && err == nil && k.point == "after commit" {
		k.dieOnce()
	}
	const enough = 40 // four times the prefetch
	if k.neighbours.Add(int64(len(batch))) >= enough {
		k.once.Do(func() { close(k.enough) })
	}
	return applied, err
}

func (k *crashingEffect) died() bool {
	_, err := os.Stat(k.flag)
	return err == nil
}

// dieOnce dies, unless a process before this one has.
func (k *crashingEffect) dieOnce() {
	if !k.died() {
		if err := os.WriteFile(k.flag, nil, 0o600); err != nil {
			panic(err)
		}
		die()
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// A crashingForwarder kills its process between the confirm and the ack, or
// before the confirm, after the neighbours were acknowledged.
type crashingForwarder struct {
	consumer.Forwarder
	k *crashingEffect
}

func (c crashingForwarder) Forward(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	if msg.MessageId == c.k.id && c.k.point == "before confirm" {
		<-c.k.enough
		c.k.dieOnce()
	}
	err := c.Forwarder.Forward(ctx, exchange, key, msg)
	if err == nil && msg.MessageId == c.k.id && c.k.point == "after confirm" {
		c.k.dieOnce()
	}
	return err
}

// keepAlive runs the child again and again, as a supervisor does, until the
// test ends. It returns the count of its violent deaths.
func keepAlive(t *testing.T, h *consumertest.Harness, point, id string) *atomic.Int64 {
	t.Helper()
	deaths := new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	flag := t.TempDir() + "/died"
	running.Go(func() {
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.Env = append(os.Environ(), "CRASH_POINT="+point, "CRASH_ID="+id, "CRASH_FLAG="+flag,
				"CRASH_RABBITMQ="+h.URL, "CRASH_DATABASE="+h.Pool.Config().ConnString())
			cmd.Stderr = os.Stderr
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
				deaths.Add(1)
			} else if err != nil && ctx.Err() == nil {
				t.Errorf("child: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return deaths
}

func TestKilledAt(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before commit", "after commit", "before confirm", "after confirm"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := consumertest.New(t, pgtest.Notification(t))
			_, stop := h.Start()
			h.WaitSubscribed(1)
			stop()
			all := h.Votes(50, "alice")
			h.Publish(all...)
			deaths := keepAlive(t, h, point, all[5].ID)
			h.WaitEffects(len(all))
			h.EventuallyEqual("messages that wait", 0, func() int { return waiting(h) })
			h.CheckEffects(len(all))
			t.Logf("%d messages, killed %d times: %d effects", len(all), deaths.Load(), h.Effects())
			if deaths.Load() != 1 {
				t.Errorf("the process died %d times, want once", deaths.Load())
			}
		})
	}
}

// waiting returns how many messages are ready in the queue and its retry queues.
func waiting(h *consumertest.Harness) int {
	n := 0
	for _, queue := range []string{h.Topology.Queue(event.VoteReceivedKey), h.Topology.Retry("1s"), h.Topology.Retry("5s")} {
		q, _ := h.Inspect(queue)
		n += q.Messages
	}
	return n
}

func TestPoisonSparesItsNeighbours(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	_, stop := h.Start()
	h.WaitSubscribed(1)
	stop()
	all := h.Votes(10, "alice")
	poison := all[4]
	h.Publish(all...)
	deaths := keepAlive(t, h, "always", poison.ID)
	h.WaitEffects(9)
	letter := h.DeadLetters(event.VoteReceivedKey, 1)[0]
	if letter.MessageId != poison.ID || letter.Headers[failure.FinalErrorClassHeader] != "poison" {
		t.Errorf("dead letter %s of class %v, want %s of class poison", letter.MessageId, letter.Headers[failure.FinalErrorClassHeader], poison.ID)
	}
	h.EventuallyEqual("notes of starts", 0, func() int { return h.Count(`select count(*) from message_starts`) })
	h.CheckEffects(9)
	t.Logf("10 prefetched, one kills: %d deaths, 9 neighbours with their effect, 1 dead letter", deaths.Load())
	if got := deaths.Load(); got != 4 { // once in its batch, three times alone
		t.Errorf("the process died %d times, want 4", got)
	}
}
