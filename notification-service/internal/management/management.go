// Package management speaks to RabbitMQ's management API: it reads how things
// stand in one virtual host, and sets policies. It deletes nothing.
package management

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

// A Client works with one virtual host.
type Client struct {
	base     string
	user     string
	password string
	vhost    string
	http     *http.Client
}

// New returns a client of the API at baseURL, which may carry user and
// password, for the virtual host of amqpURL. Without a user of its own it
// takes the one of amqpURL.
func New(baseURL, amqpURL string) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("management URL: want http://user:password@host:15672")
	}
	broker, err := amqp.ParseURI(amqpURL)
	if err != nil {
		return nil, errors.New("broker URL: want amqp://user:password@host:5672/vhost")
	}
	c := &Client{user: broker.Username, password: broker.Password, vhost: broker.Vhost, http: &http.Client{Timeout: requestTimeout}}
	if base.User != nil {
		c.user = base.User.Username()
		c.password, _ = base.User.Password()
		base.User = nil
	}
	c.base = base.JoinPath("api").String()
	return c, nil
}

// An Exchange is an exchange as it stands.
type Exchange struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Durable bool   `json:"durable"`
}

// A Queue is a queue as it stands.
type Queue struct {
	Name      string         `json:"name"`
	Durable   bool           `json:"durable"`
	Arguments map[string]any `json:"arguments"`
	Policy    string         `json:"policy"`
	Effective map[string]any `json:"effective_policy_definition"`
}

// A Binding routes from an exchange to a queue.
type Binding struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Kind        string `json:"destination_type"` // "queue" or "exchange"
	Key         string `json:"routing_key"`
}

// A Policy sets what may be tuned of the queues that its pattern matches.
type Policy struct {
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

// Exchanges returns all exchanges of the virtual host.
func (c *Client) Exchanges(ctx context.Context) (list []Exchange, err error) {
	return list, c.get(ctx, "exchanges", &list)
}

// Queues returns all queues of the virtual host.
func (c *Client) Queues(ctx context.Context) (list []Queue, err error) {
	return list, c.get(ctx, "queues", &list)
}

// Bindings returns all bindings of the virtual host.
func (c *Client) Bindings(ctx context.Context) (list []Binding, err error) {
	return list, c.get(ctx, "bindings", &list)
}

// SetPolicy makes or replaces the policy called name.
func (c *Client) SetPolicy(ctx context.Context, name string, p Policy) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	return c.do(ctx, http.MethodPut, c.path("policies", name), body, nil)
}

func (c *Client) get(ctx context.Context, what string, into any) error {
	return c.do(ctx, http.MethodGet, c.path(what, ""), nil, into)
}

func (c *Client) path(what, name string) string {
	path := c.base + "/" + what + "/" + url.PathEscape(c.vhost)
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func (c *Client) do(ctx context.Context, method, address string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.SetBasicAuth(c.user, c.password)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
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
