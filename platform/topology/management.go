package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// requestTimeout ends the requests of one check of an API that is busy or
	// gone.
	requestTimeout = 20 * time.Second
	// nodeTimeout is how long a node may say nothing before another is asked.
	nodeTimeout = 4 * time.Second
)

// A management sees one virtual host through RabbitMQ's management API, of which
// each node of a cluster has all.
type management struct {
	endpoint, user, password string   // of the first node
	hosts                    []string // of all nodes
	vhost                    string
}

// newManagement returns a client of the API at baseURL, which may carry user
// and password, and name several nodes with commas between them, for the virtual
// host of amqpURL. Without a user of its own it takes the one of amqpURL. Its
// errors show no password.
func newManagement(baseURL, amqpURL string) (*management, error) {
	m := &management{}
	nodes, err := rabbit.Nodes(amqpURL)
	if err != nil {
		return nil, errors.New("broker URL: must be amqp://user:password@host:5672/vhost")
	}
	broker, err := amqp.ParseURI(nodes[0])
	if err != nil {
		return nil, errors.New("broker URL: must be amqp://user:password@host:5672/vhost")
	}
	m.user, m.password, m.vhost = broker.Username, broker.Password, broker.Vhost
	for i, address := range rabbit.SplitHosts(baseURL) {
		base, err := url.Parse(address)
		if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
			return nil, errors.New("management URL: must be http://user:password@host:15672, or several hosts with commas between them")
		}
		m.hosts = append(m.hosts, base.Host)
		if i > 0 {
			continue
		}
		if base.User != nil {
			m.user = base.User.Username()
			m.password, _ = base.User.Password()
			base.User = nil
		}
		m.endpoint = strings.TrimSuffix(base.String(), "/")
	}
	return m, nil
}

// A snapshot is what exists in the virtual host.
type snapshot struct {
	exchanges []rabbithole.ExchangeInfo
	queues    []rabbithole.QueueInfo
	bindings  []rabbithole.BindingInfo
	policies  []rabbithole.Policy
	effective map[string]effectivePolicy // by queue, where operators have one
	nodes     []rabbithole.NodeInfo      // of the cluster; none where the user may not see them
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
	if s.effective, err = m.effective(ctx); err != nil {
		return s, fmt.Errorf("list policies of queues by the management API: %w", err)
	}
	// Without, what is known of the cluster is what its queues say.
	s.nodes, _ = visibleNodes(client)
	return s, nil
}

// visibleNodes returns the nodes of the broker, or none where the user has not the tag
// "monitoring", which no service needs. Each request for them would be a warning in the
// broker's log then.
func visibleNodes(client *rabbithole.Client) ([]rabbithole.NodeInfo, error) {
	user, err := client.Whoami()
	if err != nil {
		return nil, fmt.Errorf("read own tags by the management API: %w", err)
	}
	if !slices.Contains(user.Tags, "monitoring") && !slices.Contains(user.Tags, "administrator") {
		return nil, nil
	}
	nodes, err := client.ListNodes()
	if err != nil {
		return nil, fmt.Errorf("list nodes by the management API: %w", err)
	}
	return nodes, nil
}

// An effectivePolicy is what a queue obeys: the operators' policy that applies to
// it, by name, and its settings merged with those of the other policy.
type effectivePolicy struct {
	operator   string
	definition map[string]any
}

// effective returns the effective policies of the queues to which a policy of the
// operators applies. Only administrators may list those policies themselves.
func (m *management) effective(ctx context.Context) (map[string]effectivePolicy, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		m.endpoint+"/api/queues/"+url.PathEscape(m.vhost)+"?columns=name,operator_policy,effective_policy_definition", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.SetBasicAuth(m.user, m.password)
	res, err := anyNode{ctx, m.hosts}.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d", res.StatusCode)
	}
	var queues []struct {
		Name       string          `json:"name"`
		Operator   json.RawMessage `json:"operator_policy"`             // null or a name
		Definition json.RawMessage `json:"effective_policy_definition"` // without settings it may be a list
	}
	if err := json.NewDecoder(res.Body).Decode(&queues); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	effective := make(map[string]effectivePolicy)
	for _, q := range queues {
		var p effectivePolicy
		if json.Unmarshal(q.Operator, &p.operator) == nil && p.operator != "" && json.Unmarshal(q.Definition, &p.definition) == nil {
			effective[q.Name] = p
		}
	}
	return effective, nil
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
	client.SetTransport(anyNode{ctx, m.hosts})
	return client, cancel, nil
}

// anyNode sends a request to one node after the other, until one answers, and
// ends it with a context, of which the client itself takes none.
type anyNode struct {
	ctx   context.Context
	hosts []string
}

func (a anyNode) RoundTrip(r *http.Request) (*http.Response, error) {
	var failures []error
	for i, host := range a.hosts {
		ctx, cancel := context.WithCancel(a.ctx)
		silence := time.AfterFunc(nodeTimeout, cancel)
		if i == len(a.hosts)-1 {
			silence.Stop() // no other could be asked
		}
		try := r.Clone(ctx)
		try.URL.Host, try.Host = host, host
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				cancel()
				return nil, err
			}
			try.Body = body
		}
		res, err := http.DefaultTransport.RoundTrip(try)
		if silence.Stop(); err == nil { // the body is still to be read: ctx ends with a.ctx
			context.AfterFunc(a.ctx, cancel)
			return res, nil
		}
		cancel()
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}
