// Package rabbit keeps a connection to RabbitMQ alive, declares what its owner
// needs there, and publishes with confirms.
//
// It promises that a publish is reported as done only when the broker has
// confirmed that very message and a queue has taken it; that whatever is in
// flight when a connection drops is reported as unknown, never as done; that
// every write ends; and that nothing at the broker is ever deleted.
package rabbit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

const (
	// defaultHeartbeat is what amqp091-go and the broker use themselves: a dead
	// peer is noticed within thirty seconds.
	defaultHeartbeat = 10 * time.Second
	// dialTimeout covers the connection and the handshake. A broker that needs
	// longer is better tried again; where there are others, after nodeTimeout.
	dialTimeout = 10 * time.Second
	nodeTimeout = 3 * time.Second
	// writeTimeout ends a write that the broker does not take. It is longer than
	// any pause of a healthy broker and shorter than a confirm timeout.
	writeTimeout = 10 * time.Second
	// closeTimeout bounds the closing of a connection whose broker may not answer.
	closeTimeout = 2 * time.Second
	// answerTimeout is far above what a cluster needs that has just lost a node.
	answerTimeout = 15 * time.Second
)

// A Config says where to connect, and who observes the connection.
type Config struct {
	URL  string // amqp:// or amqps://, with user, password and virtual host; see Nodes
	Name string // shown in the broker's list of connections, and in Metrics
	Log  zerolog.Logger
	// Metrics gets the gauges of this connection; nil for none.
	Metrics prometheus.Registerer

	// Heartbeat is how often each side shows that it is alive, in whole
	// seconds; zero means 10 s. The broker closes a connection that stayed
	// silent for three of them.
	Heartbeat time.Duration
	// Guard, if set, is called right before each write to the socket. An error
	// closes the connection, and the bytes are not sent.
	Guard func() error

	// Observe, if set, is called with each State of a supervised connection.
	Observe func(State)

	redial backoff.Backoff // the pauses between attempts; defaultRedial if zero
}

// A State is that of a supervised connection, after a change or a failed attempt.
type State struct {
	Connected bool
	Cause     error  // why it is not connected; nil after an intended end
	Blocked   string // the broker's reason for taking no publishes, an alarm; empty while it does
}

// Dial opens one connection, which the caller closes. Long-running parts use
// Supervise. Of several nodes it tries one after the other, in an order of its
// own each time: so the connections spread, and those of a node that died go to
// all others.
func Dial(ctx context.Context, cfg Config) (*amqp.Connection, error) {
	nodes, err := Nodes(cfg.URL)
	if err != nil {
		return nil, err
	}
	timeout := dialTimeout
	if len(nodes) > 1 {
		timeout = nodeTimeout
	}
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	var failures []error
	for _, node := range nodes {
		conn, err := dialNode(ctx, cfg, node, timeout)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

// dialNode opens a connection to the node at address, within timeout.
func dialNode(ctx context.Context, cfg Config, address string, timeout time.Duration) (*amqp.Connection, error) {
	var socket net.Conn
	conn, err := amqp.DialConfig(address, amqp.Config{
		Heartbeat:  cfg.heartbeat(),
		Properties: properties(cfg.Name),
		Dial: func(network, addr string) (net.Conn, error) {
			var err error
			socket, err = dialSocket(ctx, cfg, network, addr, timeout)
			return socket, err
		},
	})
	if err != nil {
		if socket != nil {
			_ = socket.Close() // amqp091-go leaves it open after a failed handshake
		}
		return nil, fmt.Errorf("connect to rabbitmq: %w", err)
	}
	return conn, nil
}

// heartbeat returns the interval in the whole seconds that the protocol knows.
func (cfg Config) heartbeat() time.Duration {
	if cfg.Heartbeat < time.Second {
		return defaultHeartbeat
	}
	return cfg.Heartbeat.Truncate(time.Second)
}

func properties(name string) amqp.Table {
	table := amqp.NewConnectionProperties()
	table.SetClientConnectionName(name)
	return table
}

// dialSocket connects under a deadline that amqp091-go lifts once the
// handshake is over. Ending ctx interrupts the connecting.
func dialSocket(ctx context.Context, cfg Config, network, addr string, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	socket, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := newDeadlineConn(socket, cfg)
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Ask calls ask, which waits for answers of the broker on conn, as each
// declaration does. A broker that is there and answers nothing, as a node may
// whose cluster has no majority, loses the connection after 15 s, which ends
// ask: amqp091-go would wait without end.
func Ask(conn *amqp.Connection, ask func() error) error {
	cut := time.AfterFunc(answerTimeout, func() { closeWithin(conn, 0) })
	defer cut.Stop()
	return ask()
}

// OpenChannel opens a channel on conn, as Ask does.
func OpenChannel(conn *amqp.Connection) (ch *amqp.Channel, err error) {
	err = Ask(conn, func() error {
		ch, err = conn.Channel()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	return ch, nil
}

// Consume consumes queue on a channel of its own, with at most prefetch deliveries in hand,
// until ctx ends, or conn. It waits for the broker as Ask does.
func Consume(ctx context.Context, conn *amqp.Connection, queue string, prefetch int) (deliveries <-chan amqp.Delivery, err error) {
	err = Ask(conn, func() error {
		ch, err := conn.Channel()
		if err != nil {
			return fmt.Errorf("open channel: %w", err)
		}
		if err := ch.Qos(prefetch, 0, false); err != nil {
			return fmt.Errorf("set prefetch: %w", err)
		}
		if deliveries, err = ch.ConsumeWithContext(ctx, queue, "", false, false, false, false, nil); err != nil {
			return fmt.Errorf("consume %s: %w", queue, err)
		}
		return nil
	})
	return deliveries, err
}

// closeWithin closes conn, and waits no longer than timeout for the broker's
// part in it.
func closeWithin(conn *amqp.Connection, timeout time.Duration) {
	_ = conn.CloseDeadline(time.Now().Add(timeout)) // gone either way
}
