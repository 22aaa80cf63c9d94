package topology

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// api returns the URL of the test broker's API, which has user and password.
func api(t *testing.T) string {
	t.Helper()
	address := os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL")
	if address == "" {
		t.Fatal("TEST_RABBITMQ_MANAGEMENT_URL is not set: run `make test`")
	}
	return address
}

// oddVhost returns the URL of a virtual host whose name has to be escaped.
func oddVhost(t *testing.T) string {
	t.Helper()
	plain := rabbittest.Vhost(t)
	cut := strings.LastIndex(plain, "/") + 1
	odd := plain[:cut] + "odd%2F" + plain[cut:]
	name, client := "odd/"+plain[cut:], rabbittest.Management(t, api(t))
	if _, err := client.PutVhost(name, rabbithole.VhostSettings{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.DeleteVhost(name) })
	return odd
}

// build makes an exchange and a queue bound to it at broker.
func build(t *testing.T, broker string) {
	t.Helper()
	conn, err := amqp.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare("city", amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("votes", true, false, false, false, amqp.Table{"x-message-ttl": int32(9000)}); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("votes", "vote.#", "city", false, nil); err != nil {
		t.Fatal(err)
	}
}

func newClient(t *testing.T, address, broker string) *management {
	t.Helper()
	c, err := newManagement(address, broker)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReadsWhatStands(t *testing.T) {
	t.Parallel()
	broker := oddVhost(t)
	build(t, broker)
	c := newClient(t, api(t), broker)

	have, err := c.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(have.exchanges, func(e rabbithole.ExchangeInfo) bool { return e.Name == "city" && e.Type == "topic" && e.Durable }) {
		t.Errorf("exchanges %v, want city among them", have.exchanges)
	}
	if !slices.ContainsFunc(have.bindings, bindingSpec{queue: "votes", exchange: "city", key: "vote.#"}.is) {
		t.Errorf("bindings %v, want that of votes among them", have.bindings)
	}
	if q := have.queues; len(q) != 1 || q[0].Name != "votes" || !q[0].Durable || q[0].Arguments["x-message-ttl"] != 9000.0 {
		t.Errorf("queues %+v, want votes alone, with its time to live", q)
	}
}

func TestSetPolicyTakesEffect(t *testing.T) {
	t.Parallel()
	broker := oddVhost(t)
	build(t, broker)
	c := newClient(t, api(t), broker)
	for _, length := range []int{7, 8} { // made, and replaced
		must(t, c.setPolicy(t.Context(), rabbithole.Policy{
			Name: "odd/name", Pattern: "^votes$", ApplyTo: "queues", Priority: 5, Definition: rabbithole.PolicyDefinition{"max-length": length},
		}))
		have, err := c.read(t.Context())
		must(t, err)
		if p := have.policies; len(p) != 1 || p[0].Name != "odd/name" || p[0].Definition["max-length"] != float64(length) {
			t.Errorf("policies %+v, want odd/name alone, with length %d", p, length)
		}
	}
	eventually.NothingMissing(t, "policy of the queue", func() string { // the API shows it late
		have, err := c.read(t.Context())
		must(t, err)
		if have.queues[0].Policy != "odd/name" {
			return "is " + have.queues[0].Policy
		}
		return ""
	})
}

// Without a user of its own the client is the broker's user.
func TestUserOfTheBroker(t *testing.T) {
	t.Parallel()
	broker := rabbittest.Vhost(t)
	address, err := url.Parse(api(t))
	if err != nil {
		t.Fatal(err)
	}
	address.User = nil
	if _, err := newClient(t, address.String(), broker).read(t.Context()); err != nil {
		t.Errorf("Queues: %v", err)
	}
}

// An error says what is wrong, and never the password.
func TestFailures(t *testing.T) {
	t.Parallel()
	broker := rabbittest.Vhost(t)
	right, err := url.Parse(api(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, host, vhost, want string
	}{
		{"wrong password", right.Host, broker, "401"},
		{"no such virtual host", right.Host, broker + "-gone", "40"}, // 401 to strangers, 404 to others
		{"nobody listens", closedPort(t), broker, "connection refused"},
		{"something else answers", stranger(t), broker, "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "http://guest:s3cret@"+tt.host, tt.vhost)
			_, err := c.read(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "management API") {
				t.Errorf("Queues: %v, want an error of the management API that tells %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// stranger returns the address of a server other than a management API.
func stranger(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>"))
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

func TestMalformedURLs(t *testing.T) {
	t.Parallel()
	const good = "amqp://guest:guest@127.0.0.1/"
	for _, tt := range []struct{ api, broker, want string }{
		{"", good, "management URL: must be http://"},
		{"127.0.0.1:15672", good, "management URL: must be http://"},
		{"amqp://user:s3cret@host", good, "management URL: must be http://"},
		{"http://user:s3cret@host:port", good, "management URL: must be http://"},
		{"http://host", "http://user:s3cret@host", "broker URL: must be amqp://"},
	} {
		_, err := newManagement(tt.api, tt.broker)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("New(%q, %q): %v, want %q and no password", tt.api, tt.broker, err, tt.want)
		}
	}
}

// A check ends with its context, also when the API is silent.
func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = silent.Accept()
		cancel()
	}()
	if _, err := newClient(t, "http://guest:guest@"+silent.Addr().String(), "amqp://127.0.0.1/").read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v, want the context's error", err)
	}
}
