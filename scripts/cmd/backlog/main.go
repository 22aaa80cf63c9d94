// Command backlog lets messages wait in the queues of a city, for a walk that
// scales by their number. Nobody reads them.
//
//	backlog make VHOST PREFIX          a virtual host, with the queues of the city
//	                                   with this TOPOLOGY_PREFIX and of one without
//	backlog put VHOST QUEUE MESSAGES   so many messages more, each confirmed
//	backlog purge VHOST                none in any queue
//	backlog remove VHOST
//
// TEST_RABBITMQ_URL and TEST_RABBITMQ_MANAGEMENT_URL name the broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

// window is how many messages are not confirmed yet: beyond some hundreds, the
// client's bookkeeping costs more than the wait.
const window = 512

// managementTimeout is how long a request to the management API may take.
const managementTimeout = time.Minute

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv) })
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	if len(args) < 2 {
		return errors.New("the arguments must begin with a command and a virtual host: make, put, purge or remove")
	}
	address, err := url.Parse(getenv("TEST_RABBITMQ_URL"))
	if err != nil {
		return errors.New("TEST_RABBITMQ_URL is not a URL")
	}
	client, err := devserver.Management(getenv("TEST_RABBITMQ_MANAGEMENT_URL"), managementTimeout)
	if err != nil {
		return err
	}

	command, vhost, rest := args[0], args[1], args[2:]
	address.Path = "/" + vhost
	switch {
	case command == "make" && len(rest) == 1:
		if _, err := client.PutVhost(vhost, rabbithole.VhostSettings{}); err != nil {
			return fmt.Errorf("make virtual host: %w", err)
		}
		return declare(address.String(), rest[0])
	case command == "put" && len(rest) == 2:
		n, err := strconv.Atoi(rest[1])
		if err != nil || n < 1 {
			return fmt.Errorf("%q messages: must be a number", rest[1])
		}
		return put(ctx, address.String(), rest[0], n)
	case command == "purge" && len(rest) == 0:
		queues, err := client.ListQueuesIn(vhost)
		for _, queue := range queues {
			if err == nil {
				_, err = client.PurgeQueue(vhost, queue.Name)
			}
		}
		return err
	case command == "remove" && len(rest) == 0:
		_, err := client.DeleteVhost(vhost)
		return err
	}
	return fmt.Errorf("%q: unknown, or other arguments than it takes", command)
}

// declare makes the queues that consumers would declare, for two cities.
func declare(address, prefix string) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	for _, prefix := range []string{prefix, ""} {
		topology, err := event.NewTopology(prefix)
		if err != nil {
			return err
		}
		names := []string{topology.Named("queue.webhooks")}
		for _, key := range event.AllKeys() {
			names = append(names, topology.Queue(key))
		}
		for _, name := range names {
			for _, queue := range []string{name, topology.DeadLetterQueue(name)} {
				if err := rabbit.DeclareQueue(conn, queue, amqp.Table{"x-queue-type": "quorum"}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// put publishes n messages to queue, and returns once the broker has them all.
func put(ctx context.Context, address, queue string, n int) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		return err
	}
	defer publisher.Close()
	publishing, ctx := errgroup.WithContext(ctx)
	publishing.SetLimit(window)
	for range n {
		publishing.Go(func() error {
			return publisher.PublishWait(ctx, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("{}")})
		})
	}
	return publishing.Wait()
}
