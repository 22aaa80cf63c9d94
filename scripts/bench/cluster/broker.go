package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/devserver"
)

// startTimeout is how long the nodes of a broker may take to find each other.
const startTimeout = 3 * time.Minute

// A broker is a node of RabbitMQ, or a cluster of several, for this run alone.
type broker struct {
	folder    string
	nodes     []*devserver.RabbitMQ
	processes []*exec.Cmd
}

// startBroker starts a node for each name, and returns once all of them answer.
func startBroker(ctx context.Context, names ...string) (_ *broker, err error) {
	b := &broker{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.folder, err = os.MkdirTemp("/var/tmp", "bench-cluster"); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.folder, 0o755); err != nil { //nolint:gosec // the account of the nodes passes through
		return nil, err
	}
	ports, err := devserver.FreePorts(1 + 3*len(names))
	if err != nil {
		return nil, err
	}
	cookie := rand.Text()
	for i, name := range names {
		own := ports[1+3*i:]
		node := &devserver.RabbitMQ{
			Dir: filepath.Join(b.folder, name), Password: "guest", StatisticsInterval: 5 * time.Second, Node: name, Nodes: names, Cookie: cookie,
			Ports: devserver.RabbitMQPorts{AMQP: own[0], Management: own[1], Distribution: own[2], PortMapper: ports[0]},
		}
		if err := node.Prepare(); err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, node)
	}
	if err := b.start(b.nodes[0].PortMapper()); err != nil {
		return nil, err
	}
	if err := await(ctx, b.nodes[0].PortMapperReady); err != nil {
		return nil, fmt.Errorf("start epmd: %w", err)
	}
	for _, node := range b.nodes { // at the same time: they look for each other
		if err := b.start(node.Command()); err != nil {
			return nil, err
		}
	}
	for _, node := range b.nodes {
		if err := await(ctx, node.Ready); err != nil {
			return nil, fmt.Errorf("start a node of RabbitMQ: %w", err)
		}
	}
	return b, nil
}

// start runs a command that ends with this process, however that ends.
func (b *broker) start(cmd *exec.Cmd, err error) error {
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return err
	}
	b.processes = append(b.processes, cmd)
	return nil
}

// await asks until the answer is not an error.
func await(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// vhost makes a virtual host whose queues have a copy on each node, and returns
// its URL, which names all of them.
func (b *broker) vhost(ctx context.Context) (string, error) {
	name := "bench-" + uuid.NewString()
	if err := b.nodes[0].AddVhost(ctx, name); err != nil {
		return "", err
	}
	hosts := make([]string, len(b.nodes))
	for i, node := range b.nodes {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", node.Ports.AMQP)
	}
	return fmt.Sprintf("amqp://%s:%s@%s/%s", devserver.Superuser, b.nodes[0].Password, strings.Join(hosts, ","), name), nil
}

// close ends all nodes, whose data nobody needs any more.
func (b *broker) close() error {
	for _, cmd := range b.processes {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Erlang's helpers are in its process group
	}
	for _, cmd := range b.processes {
		_ = cmd.Wait() // it was killed
	}
	return os.RemoveAll(b.folder)
}
