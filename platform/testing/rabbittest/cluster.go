package rabbittest

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// A Cluster is three RabbitMQ nodes of one test alone. Each may be stopped,
// killed and paused by itself.
type Cluster struct {
	t     testing.TB
	Nodes []*Server
}

// StartCluster makes three nodes and starts them, which takes about half a
// minute. They are killed when t ends.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	names := []string{"city1", "city2", "city3"}
	ports, err := devserver.FreePorts(1 + 3*len(names))
	if err != nil {
		t.Fatalf("rabbittest: %v", err)
	}
	c, cookie := &Cluster{t: t}, rand.Text()
	for i, name := range names {
		dir := folder(t)
		own := ports[1+3*i:]
		s := &Server{t: t, log: filepath.Join(dir, "log.txt"), own: devserver.RabbitMQ{
			Dir: dir, Password: "guest", StatisticsInterval: 500 * time.Millisecond, Node: name, Nodes: names, Cookie: cookie,
			Ports: devserver.RabbitMQPorts{AMQP: own[0], Management: own[1], Distribution: own[2], PortMapper: ports[0]},
		}}
		if err := s.own.Prepare(); err != nil {
			t.Fatalf("rabbittest: %v", err)
		}
		c.Nodes = append(c.Nodes, s)
	}
	c.Nodes[0].startPortMapper()
	for _, s := range c.Nodes { // at the same time: they look for each other
		t.Cleanup(s.Kill)
		s.cmd = s.run(s.own.Command())
	}
	for _, s := range c.Nodes {
		s.await()
	}
	return c
}

// Node returns the node that RabbitMQ calls name, such as city1@localhost.
func (c *Cluster) Node(name string) *Server {
	c.t.Helper()
	short, _, _ := strings.Cut(name, "@")
	for _, s := range c.Nodes {
		if s.own.Node == short {
			return s
		}
	}
	c.t.Fatalf("rabbittest: no node is called %q", name)
	return nil
}

// Vhost makes a virtual host whose queues have a copy on each node, and returns
// its URL with the addresses of all nodes.
func (c *Cluster) Vhost() string {
	c.t.Helper()
	name := "test-" + strings.ReplaceAll(uuid.NewString(), "-", "")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), setupTimeout)
	defer cancel()
	if err := c.Nodes[0].own.AddVhost(ctx, name); err != nil {
		c.t.Fatalf("rabbittest: make virtual host: %v", err)
	}
	return c.join("amqp", func(s *Server) int { return s.own.Ports.AMQP }) + "/" + name
}

// ManagementURL returns the URL of the management API, with the addresses of all
// nodes.
func (c *Cluster) ManagementURL() string {
	return c.join("http", func(s *Server) int { return s.own.Ports.Management })
}

func (c *Cluster) join(scheme string, port func(*Server) int) string {
	var hosts []string
	for _, s := range c.Nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", port(s)))
	}
	return fmt.Sprintf("%s://%s:guest@%s", scheme, devserver.Superuser, strings.Join(hosts, ","))
}
