package topology

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// requestTimeout ends a request to an API that is busy or gone.
const requestTimeout = 10 * time.Second

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// A Management is a client of RabbitMQ's management API for one virtual host.
// It reads what exists there and sets policies. It deletes nothing.
type Management struct {
	base     string
	user     string
	password string
	vhost    string
	http     *http.Client
}

// NewManagement returns a client of the API at baseURL, which may carry user and
// password, for the virtual host of amqpURL. Without a user of its own it
// takes the one of amqpURL.
func NewManagement(baseURL, amqpURL string) (*Management, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("management URL: want http://user:password@host:15672")
	}
	broker, err := amqp.ParseURI(amqpURL)
	if err != nil {
		return nil, errors.New("broker URL: want amqp://user:password@host:5672/vhost")
	}
	m := &Management{user: broker.Username, password: broker.Password, vhost: broker.Vhost, http: &http.Client{Timeout: requestTimeout}}
	if base.User != nil {
		m.user = base.User.Username()
		m.password, _ = base.User.Password()
		base.User = nil
	}
	m.base = base.JoinPath("api").String()
	return m, nil
}

type exchange struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Durable bool   `json:"durable"`
}

type queue struct {
	Name      string         `json:"name"`
	Durable   bool           `json:"durable"`
	Arguments map[string]any `json:"arguments"`
	Policy    string         `json:"policy"`
	Effective map[string]any `json:"effective_policy_definition"`
}

// A binding routes from an exchange to a queue.
type binding struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Kind        string `json:"destination_type"` // "queue" or "exchange"
	Key         string `json:"routing_key"`
}

// A policy sets what may be tuned of the queues that its pattern matches.
type policy struct {
	Name       string         `json:"name,omitempty"` // left out when it is set
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

// exchanges returns all exchanges of the virtual host.
func (m *Management) exchanges(ctx context.Context) (list []exchange, err error) {
	return list, m.get(ctx, "exchanges", &list)
}

// queues returns all queues of the virtual host.
func (m *Management) queues(ctx context.Context) (list []queue, err error) {
	return list, m.get(ctx, "queues", &list)
}

// bindings returns all bindings of the virtual host.
func (m *Management) bindings(ctx context.Context) (list []binding, err error) {
	return list, m.get(ctx, "bindings", &list)
}

// policies returns all policies of the virtual host.
func (m *Management) policies(ctx context.Context) (list []policy, err error) {
	return list, m.get(ctx, "policies", &list)
}

// setPolicy makes or replaces the policy called name.
func (m *Management) setPolicy(ctx context.Context, name string, p policy) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	return m.do(ctx, http.MethodPut, m.path("policies", name), body, nil)
}

func (m *Management) get(ctx context.Context, what string, into any) error {
	return m.do(ctx, http.MethodGet, m.path(what, ""), nil, into)
}

func (m *Management) path(what, name string) string {
	path := m.base + "/" + what + "/" + url.PathEscape(m.vhost)
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func (m *Management) do(ctx context.Context, method, address string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.SetBasicAuth(m.user, m.password)
	req.Header.Set("Content-Type", "application/json")
	res, err := m.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the broker's management API: %w", err)
	}
	defer res.Body.Close()
	answer := io.LimitReader(res.Body, maxAnswer)
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer)
		return fmt.Errorf("the broker's management API answered %s: %.200s", res.Status, text)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("read the management API's answer: %w", err)
	}
	return nil
}
