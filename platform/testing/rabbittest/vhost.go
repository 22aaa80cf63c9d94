// Package rabbittest gives each test a place of its own on a real RabbitMQ: a
// virtual host on the shared test broker, or, for a test that breaks the
// broker, a broker process of its own.
package rabbittest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// setupTimeout is long because a loaded machine is slow; it only ever ends a
// test that could not have worked.
const setupTimeout = 4 * time.Minute

// Vhost returns the URL of a fresh virtual host on the shared test broker. It
// is deleted, with all in it, when t ends.
func Vhost(t testing.TB) string {
	t.Helper()
	made := newVhost(t, mustEnv(t, "TEST_RABBITMQ_URL"), SharedManagementURL(t))
	t.Cleanup(func() {
		u, _ := url.Parse(made)
		err := ask(func() error {
			_, err := Management(t, SharedManagementURL(t)).DeleteVhost(strings.TrimPrefix(u.Path, "/"))
			return err
		})
		if answer, ok := errors.AsType[rabbithole.ErrorResponse](err); err != nil && (!ok || answer.StatusCode != http.StatusNotFound) {
			t.Errorf("rabbittest: delete virtual host: %v", err)
		}
	})
	return made
}

// User returns the URL of a virtual host of the shared test broker with a user who has
// these rights there, until t ends.
func User(t testing.TB, vhost string, rights rabbithole.Permissions) string {
	t.Helper()
	u, err := url.Parse(vhost)
	if err != nil {
		t.Fatal("rabbittest: the virtual host is not a URL")
	}
	name, password := uuid.NewString(), uuid.NewString()
	api := Management(t, SharedManagementURL(t))
	if _, err := api.PutUser(name, rabbithole.UserSettings{Password: password}); err != nil {
		t.Fatalf("rabbittest: make user: %v", err)
	}
	t.Cleanup(func() { _, _ = api.DeleteUser(name) })
	if _, err := api.UpdatePermissionsIn(strings.TrimPrefix(u.Path, "/"), name, rights); err != nil {
		t.Fatalf("rabbittest: set rights: %v", err)
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}

// Queues declares durable queues at the broker, and returns the channel that did; its
// connection ends with the test.
func Queues(t testing.TB, address string, names ...string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatalf("rabbittest: connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("rabbittest: open a channel: %v", err)
	}
	for _, name := range names {
		if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
			t.Fatalf("rabbittest: declare %s: %v", name, err)
		}
	}
	return ch
}

// SharedManagementURL returns the URL of the shared test broker's management
// API, with user and password.
func SharedManagementURL(t testing.TB) string {
	t.Helper()
	return mustEnv(t, "TEST_RABBITMQ_MANAGEMENT_URL")
}

// Management returns a client of the management API at address, a URL with
// user and password.
func Management(t testing.TB, address string) *rabbithole.Client {
	t.Helper()
	client, err := devserver.Management(address, setupTimeout)
	if err != nil {
		t.Fatalf("rabbittest: management client: %v", err)
	}
	return client
}

// ask repeats a request that may be repeated for as long as the machine is too
// busy for it: the management API closes a connection on which it has said nothing
// for a minute, and answers with 500 where the broker itself gave up.
func ask(request func() error) error {
	var poll backoff.Poll
	for began := time.Now(); ; <-poll.Next() {
		err := request()
		answer, ok := errors.AsType[rabbithole.ErrorResponse](err)
		gaveUp := errors.Is(err, io.EOF) || ok && answer.StatusCode == http.StatusInternalServerError
		if !gaveUp || time.Since(began) > setupTimeout {
			return err
		}
	}
}

// newVhost makes a virtual host and returns its URL. Each attempt takes a name of
// its own: what the broker was making when it closed the connection stays as it
// is, such as without permissions, and another request for it changes nothing.
func newVhost(t testing.TB, base, management string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("rabbittest: the broker's address is not a URL")
	}
	err = ask(func() error {
		name := "test-" + strings.ReplaceAll(uuid.NewString(), "-", "")
		u.Path = "/" + name
		_, err := Management(t, management).PutVhost(name, rabbithole.VhostSettings{})
		return err
	})
	if err != nil {
		t.Fatalf("rabbittest: make virtual host: %v", err)
	}
	return u.String()
}

func mustEnv(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or `eval \"$(scripts/stack test-up)\"` before go test", name)
	}
	return value
}
