package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// checkEvery is how often the broker is checked when nothing points to a
	// fault.
	checkEvery = time.Minute
	// firstCheck is how long after the consumer has declared everything the broker
	// is checked first: its management API shows new things a little later.
	firstCheck = 15 * time.Second
	// othersEvery is how often others are asked what they have found. That costs the
	// broker nothing, and an operator waits for it.
	othersEvery = 10 * time.Second
	// readersFirst is how long a missing queue is left to the process that reads it, which
	// looks at it every two seconds: it would not notice that its queue was gone.
	readersFirst = 6 * time.Second
	// redeclareEvery spaces the declarations caused by unroutable messages.
	redeclareEvery = 2 * time.Second
	// nodesTimeout ends the request for the nodes: the next one comes soon.
	nodesTimeout = 4 * time.Second
	// nodesFor is how long what was read of the nodes is the answer.
	nodesFor = 3 * othersEvery
)

// A Finding is a difference between what exists at the broker and what
// should.
type Finding struct {
	What   string
	Remedy string // what the operator can do
}

// blind is the finding of a checker without the management API.
var blind = Finding{
	What:   "policies of the queues are neither set nor checked: RABBITMQ_MANAGEMENT_URL is not set",
	Remedy: "set it: without the policies queues have neither a limit of their size nor, before RabbitMQ 4, of deliveries, and dead letters are lost while their queue is missing or full",
}

// A Checker keeps the broker as a Topology says. It declares missing parts, applies
// our policies where there are none, and reports what it cannot remedy: parts that
// exist and differ. Without management it sees nothing but that, and only declares when
// a message is unroutable.
type Checker struct {
	topology   *Topology
	management *management // nil without the API
	rabbit     rabbit.Config
	log        zerolog.Logger
	firstCheck time.Duration // the constant, shorter in tests
	unroutable chan struct{} // holds one request to look for a missing binding

	others func(context.Context) ([]Finding, error) // what others have found; may be nil

	mu       sync.Mutex
	findings []Finding
	found    []Finding         // by others
	copies   map[string]Copies // by queue
	nodes    []Node
	nodesAt  time.Time
}

// NewChecker returns a Checker that declares on connections of cfg, and sees
// the same broker through its management API at managementURL, unless that is
// empty.
func NewChecker(t *Topology, managementURL string, cfg rabbit.Config) (*Checker, error) {
	c := &Checker{topology: t, rabbit: cfg, log: cfg.Log, firstCheck: firstCheck, unroutable: make(chan struct{}, 1)}
	if managementURL == "" {
		c.findings = []Finding{blind}
		return c, nil
	}
	var err error
	c.management, err = newManagement(managementURL, cfg.URL)
	return c, err
}

// ValidManagementURL reports whether NewChecker takes managementURL.
func ValidManagementURL(managementURL string) bool {
	_, err := newManagement(managementURL, "amqp://127.0.0.1/")
	return managementURL == "" || err == nil
}

// Findings returns what differed at the last check, and what others found.
func (c *Checker) Findings() []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.findings, c.found)
}

// AlsoFind has the findings of others listed with those of the checker. It is to be
// called before Run.
func (c *Checker) AlsoFind(others func(context.Context) ([]Finding, error)) { c.others = others }

func (c *Checker) askOthers(ctx context.Context) {
	if c.others == nil {
		return
	}
	found, err := c.others(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("reading findings about the topology failed, will retry")
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = found
}

// Copies returns where a queue was at the last check, or nil if it has a single
// copy, or nobody has looked.
func (c *Checker) Copies(queue string) *Copies {
	c.mu.Lock()
	defer c.mu.Unlock()
	if copies, ok := c.copies[queue]; ok {
		return &copies
	}
	return nil
}

// Unroutable is to be called when no queue took a message that was published:
// a binding is missing.
func (c *Checker) Unroutable(exchange, key string) {
	c.log.Error().Str("exchange", exchange).Str("routing_key", key).Msg("message is unroutable, will declare the topology again")
	select {
	case c.unroutable <- struct{}{}:
	default: // requested already
	}
}

// Run sets the policies, and checks soon after the topology was declared, then
// every minute and when a message is unroutable, until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	if c.management != nil {
		if _, err := c.setPolicies(ctx, nil); err != nil {
			c.log.Warn().Err(err).Msg("setting policies failed, will retry")
		}
	} else {
		c.log.Warn().Str("finding", blind.What).Str("remedy", blind.Remedy).Msg("topology is not checked")
	}
	check := time.NewTimer(checkEvery)
	defer check.Stop()
	others := time.NewTicker(othersEvery)
	defer others.Stop()
	declared := c.topology.declared
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-declared:
			declared = nil
			check.Reset(c.firstCheck)
			continue
		case <-others.C:
			c.askOthers(ctx)
			c.readNodes(ctx)
			continue
		case <-check.C:
			c.Check(ctx)
		case <-c.unroutable:
			c.Check(ctx) // says what is missing
			if c.management == nil && c.topology.readElsewhere() && backoff.Sleep(ctx, readersFirst) != nil {
				return nil
			}
			if err := c.declare(ctx); err != nil && ctx.Err() == nil {
				c.log.Error().Err(err).Msg("declaring the topology failed, will retry")
			}
			if backoff.Sleep(ctx, redeclareEvery) != nil {
				return nil
			}
		}
		check.Reset(checkEvery)
	}
}

// Demand has the queue called name, without the prefix of the topology, wanted from
// now on, and returns once it is bound, or ctx ended. It must be called before the
// first of its messages is needed.
func (c *Checker) Demand(ctx context.Context, name string) error {
	name = c.topology.Names.Named(name)
	i := slices.IndexFunc(c.topology.queues, func(q *groupQueue) bool { return q.name == name })
	if i < 0 {
		return fmt.Errorf("queue %s is none of this topology", name)
	}
	c.topology.queues[i].demanded.Store(true)
	return c.declare(ctx)
}

// Check compares the broker with the topology now, remedies what it can, and
// logs new findings of the rest.
func (c *Checker) Check(ctx context.Context) {
	if c.management == nil {
		return
	}
	missing, differing, err := c.compare(ctx)
	if err == nil && len(missing) > 0 && c.topology.readElsewhere() {
		if backoff.Sleep(ctx, readersFirst) != nil {
			return
		}
		missing, differing, err = c.compare(ctx)
	}
	if err == nil && len(missing) > 0 {
		for _, f := range missing {
			c.log.Warn().Str("finding", f.What).Str("remedy", f.Remedy).Msg("topology is incomplete, will declare the missing parts")
		}
		if declareErr := c.declare(ctx); declareErr != nil {
			c.log.Error().Err(declareErr).Msg("declaring the topology failed, will retry")
		}
		missing, differing, err = c.compare(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("checking the topology failed, will retry")
		}
		return
	}
	findings := append(missing, differing...)
	c.mu.Lock()
	before := c.findings
	c.findings = findings
	c.mu.Unlock()
	for _, f := range findings {
		if !slices.Contains(before, f) {
			c.log.Error().Str("finding", f.What).Str("remedy", f.Remedy).Msg("topology differs")
		}
	}
	if len(findings) == 0 && len(before) > 0 {
		c.log.Info().Msg("topology is as it should be again")
	}
}

// compare returns parts that are missing at the broker and can be declared, and parts
// that exist and differ. It sets our policies that are missing.
func (c *Checker) compare(ctx context.Context) (missing, differing []Finding, err error) {
	have, err := c.management.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	set, err := c.setPolicies(ctx, have.policies)
	if err != nil {
		return nil, nil, err
	}
	have.policies = append(have.policies, set...)
	need := c.topology.needed(ctx)
	copies := need.copies(have)
	c.mu.Lock()
	c.copies = copies
	c.mu.Unlock()
	missing, differing = need.compare(have)
	return missing, append(differing, need.comparePolicies(c.topology.policies, have.policies, have.effective, c.management.vhost)...), nil
}

// declare puts back missing parts, and stops waiting when ctx ends.
func (c *Checker) declare(ctx context.Context) error {
	conn, err := rabbit.Dial(ctx, c.rabbit)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stop()
	defer conn.Close()
	return errors.Join(c.topology.Repair(ctx, conn), ctx.Err())
}

// setPolicies sets and returns those of our policies that are not among have.
// One that is and differs may be another version's: both would set it in turn.
func (c *Checker) setPolicies(ctx context.Context, have []rabbithole.Policy) (set []rabbithole.Policy, err error) {
	for _, p := range c.topology.policies {
		if slices.ContainsFunc(have, func(h rabbithole.Policy) bool { return h.Name == p.Name }) {
			continue
		}
		if err := c.management.setPolicy(ctx, p); err != nil {
			return nil, err
		}
		c.log.Info().Str("policy", p.Name).Msg("policy set")
		p.Vhost = c.management.vhost
		set = append(set, p)
	}
	return set, nil
}
