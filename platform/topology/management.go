package topology

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"
)

// requestTimeout ends the requests of one check of an API that is busy or
// gone.
const requestTimeout = 20 * time.Second

// A management sees one virtual host through RabbitMQ's management API.
type management struct {
	endpoint, user, password string
	vhost                    string
}

// newManagement returns a client of the API at baseURL, which may carry user
// and password, for the virtual host of amqpURL. Without a user of its own it
// takes the one of amqpURL. Its errors show no password.
func newManagement(baseURL, amqpURL string) (*management, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("management URL: want http://user:password@host:15672")
	}
	broker, err := amqp.ParseURI(amqpURL)
	if err != nil {
		return nil, errors.New("broker URL: want amqp://user:password@host:5672/vhost")
	}
	m := &management{user: broker.Username, password: broker.Password, vhost: broker.Vhost}
	if base.User != nil {
		m.user = base.User.Username()
		m.password, _ = base.User.Password()
		base.User = nil
	}
	m.endpoint = strings.TrimSuffix(base.String(), "/")
	return m, nil
}

// A snapshot is what exists in the virtual host.
type snapshot struct {
	exchanges []rabbithole.ExchangeInfo
	queues    []rabbithole.QueueInfo
	bindings  []rabbithole.BindingInfo
	policies  []rabbithole.Policy
}

// read returns what exists now.
func (m *management) read(ctx context.Context) (s snapshot, err error) {
	client, cancel, err := m.client(ctx)
	if err != nil {
		return s, err
	}
	defer cancel()
	if s.exchanges, err = client.ListExchangesIn(m.vhost); err != nil {
		return s, fmt.Errorf("list exchanges by the management API: %w", err)
	}
	if s.queues, err = client.ListQueuesIn(m.vhost); err != nil {
		return s, fmt.Errorf("list queues by the management API: %w", err)
	}
	if s.bindings, err = client.ListBindingsIn(m.vhost); err != nil {
		return s, fmt.Errorf("list bindings by the management API: %w", err)
	}
	if s.policies, err = client.ListPoliciesIn(m.vhost); err != nil {
		return s, fmt.Errorf("list policies by the management API: %w", err)
	}
	return s, nil
}

// setPolicy makes or replaces a policy.
func (m *management) setPolicy(ctx context.Context, p rabbithole.Policy) error {
	client, cancel, err := m.client(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	res, err := client.PutPolicy(m.vhost, p.Name, p)
	if err != nil {
		return fmt.Errorf("set policy %s by the management API: %w", p.Name, err)
	}
	return res.Body.Close()
}

// client returns a client whose requests end with ctx, or after
// requestTimeout.
func (m *management) client(ctx context.Context) (*rabbithole.Client, context.CancelFunc, error) {
	client, err := rabbithole.NewClient(m.endpoint, m.user, m.password)
	if err != nil {
		return nil, nil, fmt.Errorf("make management client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	client.SetTransport(untilDone{ctx})
	return client, cancel, nil
}

// untilDone ends requests with a context. The client takes none itself.
type untilDone struct{ ctx context.Context }

func (u untilDone) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.DefaultTransport.RoundTrip(r.WithContext(u.ctx))
}
