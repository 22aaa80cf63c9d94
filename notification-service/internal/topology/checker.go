package topology

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// checkEvery is how often the broker is checked when nothing points to a
	// fault.
	checkEvery = time.Minute
	// policiesShow is how long the broker may take to show a policy at its
	// queues: quorum queues report about every five seconds, and management asks
	// them now and then. An earlier check finds faults that are none.
	policiesShow = 15 * time.Second
	// redeclareEvery spaces the declarations that unroutable messages ask for.
	redeclareEvery = 2 * time.Second
)

// A Finding is a difference between what exists at the broker and what
// should.
type Finding struct {
	What string `json:"what"`
	Mend string `json:"mend"` // what the operator can do
}

// A Checker compares the broker with a Topology, applies the policies, and
// declares what is missing when a message finds no queue. Without management
// it can only declare.
type Checker struct {
	topology   *Topology
	management *Management
	rabbit     rabbit.Config
	log        zerolog.Logger
	unroutable chan struct{} // holds one request to look for a missing binding

	mu       sync.Mutex
	findings []Finding
}

// NewChecker returns a Checker that declares on connections of cfg and sees
// the broker through management, which may be nil.
func NewChecker(t *Topology, management *Management, cfg rabbit.Config) *Checker {
	return &Checker{topology: t, management: management, rabbit: cfg, log: cfg.Log, unroutable: make(chan struct{}, 1)}
}

// Findings returns what the last check found.
func (c *Checker) Findings() []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.findings)
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

// Run applies the policies, and checks once they show, then every minute and
// when a message is unroutable, until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	if c.management != nil {
		if err := c.applyPolicies(ctx); err != nil {
			c.log.Warn().Err(err).Msg("applying policies failed")
		}
	}
	check := time.NewTimer(policiesShow)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-check.C:
			c.Check(ctx)
		case <-c.unroutable:
			c.Check(ctx)
			if err := c.redeclare(ctx); err != nil && ctx.Err() == nil {
				c.log.Error().Err(err).Msg("declaring the topology failed")
			}
			if !pause(ctx, redeclareEvery) {
				return nil
			}
		}
		check.Reset(checkEvery)
	}
}

// Check compares the broker with the topology now, and logs what is new.
func (c *Checker) Check(ctx context.Context) {
	if c.management == nil {
		return
	}
	findings, err := c.compare(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("checking the topology failed, will retry")
		}
		return
	}
	c.mu.Lock()
	before := c.findings
	c.findings = findings
	c.mu.Unlock()
	for _, f := range findings {
		if !slices.Contains(before, f) {
			c.log.Error().Str("finding", f.What).Str("mend", f.Mend).Msg("topology differs")
		}
	}
	if len(findings) == 0 && len(before) > 0 {
		c.log.Info().Msg("topology is as it should be again")
	}
}

func (c *Checker) compare(ctx context.Context) ([]Finding, error) {
	exchanges, err := c.management.exchanges(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := c.management.queues(ctx)
	if err != nil {
		return nil, err
	}
	bindings, err := c.management.bindings(ctx)
	if err != nil {
		return nil, err
	}
	findings := compareExchanges(c.topology.exchanges, exchanges)
	findings = append(findings, compareQueues(c.topology.queues, queues)...)
	findings = append(findings, c.topology.compareBindings(bindings)...)
	return append(findings, comparePolicies(policies(c.topology.Names), queues)...), nil
}

// redeclare puts back what is missing.
func (c *Checker) redeclare(ctx context.Context) error {
	conn, err := rabbit.Dial(ctx, c.rabbit)
	if err != nil {
		return err
	}
	defer conn.Close()
	return c.topology.Declare(conn)
}

// applyPolicies sets the policies of our queues.
func (c *Checker) applyPolicies(ctx context.Context) error {
	for name, p := range policies(c.topology.Names) {
		if err := c.management.setPolicy(ctx, name, p); err != nil {
			return fmt.Errorf("set policy %s: %w", name, err)
		}
	}
	return nil
}

// pause waits, and tells whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
