package delay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// TestMain lets the test binary be a releaser that kills itself.
func TestMain(m *testing.M) {
	if os.Getenv("CRASH_DATABASE") == "" {
		os.Exit(m.Run())
	}
	if err := child(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func child(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("CRASH_DATABASE"))
	if err != nil {
		return err
	}
	defer pool.Close()
	afterConfirm, err := strconv.ParseBool(os.Getenv("CRASH_AFTER_CONFIRM"))
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(os.Getenv("CRASH_AT"), 10, 64)
	if err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	fwd := forwarder.New(rabbit.Config{URL: os.Getenv("CRASH_RABBITMQ"), Name: "test releaser", Log: zerolog.Nop()}, reg, func(string, string) {})
	go func() { _ = fwd.Run(ctx) }()
	k := &killer{Forwarder: fwd, at: at, afterConfirm: afterConfirm}
	return delay.NewReleaser(delay.Config{Max: 1, ReleaseRate: 100_000}, delay.NewStore(pool), k, func(string, string) {}, reg, zerolog.Nop()).Run(ctx)
}

// A killer kills its process at the publish of a message: between the claim and
// the confirm, or between the confirm and the delete.
type killer struct {
	delay.Forwarder
	at           int64
	afterConfirm bool
	published    atomic.Int64
}

func (k *killer) Publish(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	now := k.published.Add(1) == k.at
	if now && !k.afterConfirm {
		die()
	}
	err := k.Forwarder.Publish(ctx, exchange, key, msg)
	if now && err == nil {
		die()
	}
	return err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// A releaser that is killed again and again, after its claim, before and after
// a confirm, loses nothing and doubles no effect.
func TestReleaserKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	n, kills := short.Count(400, 4_000), short.Count(10, 100)
	h := consumertest.New(t, pgtest.Notification(t))
	none := delay.NewReleaser(delay.Config{Max: n, ReleaseRate: 1}, delay.NewStore(h.Pool), nil, nil, prometheus.NewRegistry(), zerolog.Nop())
	h.Start(consumertest.WithParker(none)) // it parks, and releases nothing
	h.WaitSubscribed(1)
	votes := h.Votes(n, "alice")
	for i := range votes {
		votes[i] = after(votes[i], time.Hour)
	}
	h.Publish(votes...)
	h.EventuallyEqual("messages that wait", n, func() int { return waiting(h) })

	run := func(at int, afterConfirm bool) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CRASH_RABBITMQ="+h.URL, "CRASH_DATABASE="+h.Pool.Config().ConnString(),
			"CRASH_AT="+strconv.Itoa(at), "CRASH_AFTER_CONFIRM="+strconv.FormatBool(afterConfirm))
		cmd.Stderr = os.Stderr
		return cmd
	}
	mustExec := func(sql string, args ...any) {
		t.Helper()
		if _, err := h.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range kills {
		// Forty are due at a time, and the lease of the dead one is over.
		mustExec(`update delayed_messages set lease_until = null`)
		mustExec(`update delayed_messages set due_at = now() where (queue, message_id) in (
			select queue, message_id from delayed_messages order by due_at, message_id limit 40)`)
		err := run(1+i%20, i%2 == 1).Run()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("releaser %d ended with %v, want it killed", i, err)
		}
	}
	leased := h.Count(`select count(*) from delayed_messages where lease_until > now()`)
	mustExec(`update delayed_messages set due_at = now(), lease_until = null`)
	last := run(-1, false)
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = last.Process.Kill(); _ = last.Wait() }()
	h.WaitEffects(n)
	h.EventuallyEqual("messages that wait", 0, func() int { return waiting(h) })
	h.CheckEffects(n)
	t.Logf("%d messages, %d releasers killed, the last with %d in hand: %d effects, %d delivered twice",
		n, kills, leased, h.Effects(), h.Metric("consumer_messages_duplicate_total"))
}
