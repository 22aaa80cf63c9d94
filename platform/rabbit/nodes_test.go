package rabbit_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][]string{
		"amqp://u:p@a:5672/v":                  {"amqp://u:p@a:5672/v"},
		"amqp://u:p@a:5672,b:5673,c/v":         {"amqp://u:p@a:5672/v", "amqp://u:p@b:5673/v", "amqp://u:p@c/v"},
		"amqps://u:p,%40q@a,b/?heartbeat=3":    {"amqps://u:p,%40q@a/", "amqps://u:p,%40q@b/"},
		"amqp://a,b":                           {"amqp://a", "amqp://b"},
		"amqp://u:p@[::1]:5672,[::2]:5672/v":   {"amqp://u:p@[::1]:5672/v", "amqp://u:p@[::2]:5672/v"},
		"amqp://u:geheim@a,,b/v":               nil,
		"amqp://u:geheim@a:5672,b:port/v":      nil,
		"http://u:geheim@a,b":                  nil,
		"amqp://u:geheim@a:5672,amqp://b:5672": nil,
	} {
		nodes, err := rabbit.Nodes(address)
		if !slices.Equal(nodes, want) || (err != nil) != (want == nil) {
			t.Errorf("%s: nodes %q, error %v; want %q", address, nodes, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error %q shows the password", address, err)
		}
	}
}

// Nodes that are down cost an attempt each and nothing else, and the connections go to
// all the others.
func TestConnectionsGoToTheNodesThatLive(t *testing.T) {
	t.Parallel()
	broker, err := url.Parse(rabbittest.Vhost(t))
	if err != nil {
		t.Fatal(err)
	}
	first, second := newGate(t), newGate(t)
	first.open.Store(true)
	hosts := []string{"127.0.0.1:1"}
	for _, g := range []*gate{first, second} {
		u, err := url.Parse(g.url)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Host)
	}
	// Both gates lead to the shared broker, where one virtual host does for both.
	broker.Host = strings.Join(hosts, ",")
	cfg := rabbit.Config{URL: broker.String(), Name: "of a cluster"}
	conn, err := rabbit.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatalf("one of three nodes lives: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	second.open.Store(true)
	reached := make(map[string]bool)
	for deadline := time.Now().Add(2 * time.Minute); len(reached) < 2 && time.Now().Before(deadline); {
		var conn *amqp.Connection
		if conn, err = rabbit.Dial(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		reached[conn.RemoteAddr().String()] = true
		_ = conn.Close()
	}
	if len(reached) != 2 {
		t.Errorf("all connections went to %v, want to both nodes that live", reached)
	}
}
