// Command features shows on a running stack what its queues promise: that a
// message is published under confirm, has its effect once however often it
// is delivered, waits in the broker for its next attempt, becomes a dead
// letter with its reason, and has its effect after all once it is mended and
// replayed. It prints what it sees, for someone who wants to be convinced.
//
// Its messages are test notifications to the officials; the dead letter that
// it makes is resolved by the end.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

// patience is how long the walk waits for what must come.
const patience = 30 * time.Second

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stdout) })
}

// A walk is the stack, and those who look at it.
type walk struct {
	topology  event.Topology
	keyring   *event.Keyring
	broker    *amqp.Connection
	publisher *amqp.Channel // in confirm mode
	returned  chan amqp.Return
	official  *client.Client
	operator  *client.Client
	out       io.Writer
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("features", flag.ContinueOnError)
	gateway := flags.String("gateway", cmp.Or(getenv("GATEWAY_URL"), "http://127.0.0.1:8080"), "address of the stack; or set GATEWAY_URL")
	if err := flags.Parse(args); err != nil {
		return err
	}
	topology, err := event.NewTopology(getenv("TOPOLOGY_PREFIX"))
	if err != nil {
		return err
	}
	keyring, err := event.ParseKeyring(getenv("RECIPIENT_KEY"))
	if err != nil {
		return fmt.Errorf("set RECIPIENT_KEY to the stack's: %w", err)
	}
	w := &walk{topology: topology, keyring: keyring, out: out}
	if err := w.connect(ctx, getenv, *gateway); err != nil {
		return err
	}
	defer w.broker.Close()
	for _, stop := range []struct {
		title string
		show  func(context.Context) error
	}{
		{"Queues, prefetch and workers", w.pools},
		{"Publisher confirms", w.confirms},
		{"Idempotency: one message, delivered three times", w.idempotency},
		{"Delayed retry in the broker", w.retry},
		{"Dead letter, edit and replay", w.deadLetter},
	} {
		fmt.Fprintf(out, "\n== %s\n", stop.title)
		if err := stop.show(ctx); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(stop.title), err)
		}
	}
	fmt.Fprintln(out, "\nEverything behaved as promised.")
	return nil
}

// connect signs in by the development issuer and opens the broker.
func (w *walk) connect(ctx context.Context, getenv func(string) string, gateway string) (err error) {
	city := client.New(gateway)
	if w.official, err = city.SignIn(ctx, "Features walk", "official", ""); err != nil {
		return fmt.Errorf("sign in (the stack must run with AUTH_MODE=dev): %w", err)
	}
	if w.operator, err = city.SignIn(ctx, "Features walk", "operator", ""); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	url := getenv("RABBITMQ_URL")
	if url == "" {
		return errors.New("set RABBITMQ_URL to the stack's broker")
	}
	if w.broker, err = rabbit.Dial(ctx, rabbit.Config{URL: url, Name: "features"}); err != nil {
		return errors.New("the broker at RABBITMQ_URL cannot be reached") // the cause may show the password
	}
	if w.publisher, err = w.broker.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	w.returned = w.publisher.NotifyReturn(make(chan amqp.Return, 1))
	if err := w.publisher.Confirm(false); err != nil {
		return fmt.Errorf("enter confirm mode: %w", err)
	}
	return nil
}

func (w *walk) say(format string, args ...any) { fmt.Fprintf(w.out, "   "+format+"\n", args...) }
