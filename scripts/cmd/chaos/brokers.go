//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A broker is a node of a RabbitMQ cluster.
type broker struct {
	name         string // as the nodes call it
	process      string // as the stack does
	pid          string // its pid file
	distribution int    // the port at which it listens for the other nodes
	management   *rabbithole.Client
}

// quorum is the type of a queue that has copies on several nodes.
const quorum = "quorum"

// findBrokers reads the ports that the stack has given to the nodes. There are none
// where it runs one RabbitMQ.
func findBrokers(dir string) ([]broker, error) {
	lines, err := portsOfNodes(dir, "rabbitmq")
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	password, err := os.ReadFile(filepath.Join(dir, "secrets", "rabbitmq", "password"))
	if err != nil {
		return nil, fmt.Errorf("read the password of RabbitMQ's superuser: %w", err)
	}
	var brokers []broker
	for i, line := range lines {
		server := devserver.RabbitMQ{Password: string(password)}
		if err := server.Ports.Set(line); err != nil {
			return nil, fmt.Errorf("ports of the RabbitMQ nodes: %w", err)
		}
		management, err := devserver.Management(server.ManagementURL(), statusTimeout)
		if err != nil {
			return nil, err
		}
		process := fmt.Sprintf("rabbitmq-%d", i+1)
		brokers = append(brokers, broker{
			name: fmt.Sprintf("city%d@localhost", i+1), process: process, pid: filepath.Join(dir, process+".pid"),
			distribution: server.Ports.Distribution, management: management,
		})
	}
	return brokers, nil
}

// brokerKinds are the faults of RabbitMQ where it is a cluster. Each hits one node,
// and returns once all of them are there and every queue has all of its copies.
var brokerKinds = map[string]fault{
	// The node that leads a queue of ours, chosen at random, and one that follows.
	"rabbitmq-leader-kill":   killBroker(func(b broker, leader string) bool { return b.name == leader }),
	"rabbitmq-follower-kill": killBroker(func(b broker, leader string) bool { return b.name != leader }),
	"rabbitmq-partition":     thenClustered(partitionBroker),
	"rabbitmq-stop":          thenClustered(end("rabbitmq", syscall.SIGTERM)),
	"rabbitmq-pause":         thenClustered(pause(whole("rabbitmq"))),
	"rabbitmq-cut":           thenClustered(cut(whole("rabbitmq"))),
}

// killBroker kills one of the nodes that are meant, and starts it again.
func killBroker(meant func(b broker, leader string) bool) fault {
	return thenClustered(func(ctx context.Context, s *stack, random *rand.Rand) error {
		var leader string
		err := poll(ctx, "a queue that has a leader", func() (found bool) {
			leader, found = s.leader(random)
			return found
		})
		if err != nil {
			return err
		}
		candidates := slices.DeleteFunc(slices.Clone(s.brokers), func(b broker) bool { return !meant(b, leader) })
		if len(candidates) == 0 {
			return fmt.Errorf("node %s leads a queue, and is none of this stack", leader)
		}
		return candidates[random.IntN(len(candidates))].kill(ctx, s)
	})
}

// thenClustered is a fault that ends when the nodes are as they were, or as an
// operator has made them.
func thenClustered(what fault) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		if err := what(ctx, s, random); err != nil {
			return err
		}
		return s.awaitClustered(ctx)
	}
}

const (
	// unaided is how long nodes may take to find each other by themselves.
	unaided = 2 * time.Minute
	// statusTimeout is when a RabbitMQ node counts as silent. One that misses others asks
	// them first, and needs several seconds on a busy machine until it says so.
	statusTimeout = 10 * time.Second
)

// awaitClustered waits until the nodes are as they were, and starts one again that
// does not come back by itself, as an operator or a liveness probe does. Where a
// partition is over when RabbitMQ hears of it, all nodes may run, and some not see
// each other; and a node that has paused may wait for another without end when it
// starts.
func (s *stack) awaitClustered(ctx context.Context) (failed error) {
	since := time.Now()
	err := poll(ctx, "all RabbitMQ nodes have all copies of the queues", func() bool {
		if time.Since(since) > unaided {
			if b := s.astray(); b != (broker{}) {
				s.rejoined++
				failed = b.kill(ctx, s)
				since = time.Now()
			}
		}
		return failed != nil || s.clustered()
	})
	return errors.Join(failed, err)
}

// astray returns the node that does not answer, or that does not see most of the
// others while all of them run; none if there is none, or more than one.
func (s *stack) astray() (one broker) {
	unseen, silent := 0, 0
	for _, b := range s.brokers {
		nodes, err := b.management.ListNodes()
		if err != nil {
			silent++
			one, unseen = b, len(s.brokers)
		}
		for _, n := range nodes {
			if n.Name == b.name && len(n.Partitions) > unseen {
				one, unseen = b, len(n.Partitions)
			}
		}
	}
	if silent > 1 {
		return broker{}
	}
	return one
}

// leader returns the node that leads one of the queues, chosen at random.
func (s *stack) leader(random *rand.Rand) (node string, found bool) {
	queues, err := s.queues()
	if err != nil || len(queues) == 0 {
		return "", false
	}
	node = queues[random.IntN(len(queues))].Leader
	return node, node != ""
}

// queues returns those that have copies on several nodes, as the first node that
// answers knows them.
func (s *stack) queues() ([]rabbithole.QueueInfo, error) {
	var errs error
	for _, b := range s.brokers {
		queues, err := b.management.ListQueues()
		if err == nil {
			return slices.DeleteFunc(queues, func(q rabbithole.QueueInfo) bool { return q.Type != quorum }), nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, errs
}

// clustered reports whether every node sees all others, and every queue has a copy
// on each that can be used.
func (s *stack) clustered() bool {
	for _, b := range s.brokers {
		nodes, err := b.management.ListNodes()
		if err != nil || len(nodes) != len(s.brokers) {
			return false
		}
		for _, n := range nodes {
			if !n.IsRunning || len(n.Partitions) > 0 {
				return false
			}
		}
	}
	queues, err := s.queues()
	return err == nil && !slices.ContainsFunc(queues, func(q rabbithole.QueueInfo) bool {
		return len(q.Members) != len(s.brokers) || len(q.Online) != len(q.Members)
	})
}

// kill kills the node, and starts it again.
func (b broker) kill(ctx context.Context, s *stack) error {
	pid, err := proc.ReadPID(b.pid)
	if err != nil {
		return err
	}
	if err := endProcess(ctx, pid, syscall.SIGKILL); err != nil {
		return err
	}
	return s.start(ctx, b.process)
}

// partitionBroker cuts a node off from the others for a while, and not from its
// clients.
func partitionBroker(ctx context.Context, s *stack, random *rand.Rand) error {
	b := s.brokers[random.IntN(len(s.brokers))]
	var ports, peers []int
	away, err := proc.ReadPID(b.pid)
	if err != nil {
		return err
	}
	for _, other := range s.brokers {
		ports = append(ports, other.distribution)
		if other.pid == b.pid {
			continue
		}
		pid, err := proc.ReadPID(other.pid)
		if err != nil {
			return err
		}
		peers = append(peers, pid)
	}
	p, err := separate(away, peers, ports)
	if err != nil {
		return err
	}
	return errors.Join(wait.For(ctx, while(random)), p.heal())
}

// portsOfNodes returns the ports that the stack has given to the nodes of a cluster,
// a line each. There are none where the cluster does not run.
func portsOfNodes(dir, name string) (lines []string, err error) {
	running, _ := filepath.Glob(filepath.Join(dir, name+"-[0-9].pid")) // the pattern is well formed
	if len(running) == 0 {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, name+".ports"))
	if err != nil {
		return nil, fmt.Errorf("read the ports of the %s nodes: %w", name, err)
	}
	return strings.Fields(string(text)), nil
}
