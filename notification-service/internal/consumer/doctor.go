package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/management"
	"github.com/cityconnect/cityconnect/platform/event"
)

// examineEvery is how often the topology is looked at when nothing points to
// a fault.
const examineEvery = time.Minute

// policiesShow is how long the broker may take to show a policy at its queues:
// quorum queues report about every five seconds, and management asks them now
// and then. Whoever looks earlier finds faults that are none.
const policiesShow = 15 * time.Second

// A Finding is a difference between what stands at the broker and what
// should.
type Finding struct {
	What string `json:"what"`
	Mend string `json:"mend"` // what the operator can do
}

// A Doctor compares the topology with what it should be, and says how to mend
// what differs. It sets our policies; it deletes nothing.
type Doctor struct {
	client   *management.Client
	topology event.Topology
	tuning   Tuning
	log      zerolog.Logger

	mu       sync.Mutex
	findings []Finding
}

// NewDoctor returns a Doctor that sees the broker through client.
func NewDoctor(client *management.Client, t event.Topology, tuning Tuning, log zerolog.Logger) *Doctor {
	return &Doctor{client: client, topology: t, tuning: tuning, log: log}
}

// Findings returns what the last examination found.
func (d *Doctor) Findings() []Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.findings)
}

// run examines once the topology was declared and our policies show, then
// every minute.
func (d *Doctor) run(ctx context.Context, declared <-chan struct{}) {
	select {
	case <-declared:
	case <-ctx.Done():
		return
	}
	if err := applyPolicies(ctx, d.client, d.topology); err != nil {
		d.log.Warn().Err(err).Msg("policies are not applied")
	}
	for wait := policiesShow; pause(ctx, wait); wait = examineEvery {
		d.Examine(ctx)
	}
}

// Examine looks at the broker now and reports what is new.
func (d *Doctor) Examine(ctx context.Context) {
	findings, err := d.diagnose(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("topology cannot be examined")
		}
		return
	}
	d.mu.Lock()
	before := d.findings
	d.findings = findings
	d.mu.Unlock()
	for _, f := range findings {
		if !slices.Contains(before, f) {
			d.log.Error().Str("finding", f.What).Str("mend", f.Mend).Msg("topology differs")
		}
	}
	if len(findings) == 0 && len(before) > 0 {
		d.log.Info().Msg("topology is as it should be again")
	}
}

func (d *Doctor) diagnose(ctx context.Context) ([]Finding, error) {
	exchanges, err := d.client.Exchanges(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := d.client.Queues(ctx)
	if err != nil {
		return nil, err
	}
	bindings, err := d.client.Bindings(ctx)
	if err != nil {
		return nil, err
	}
	b := plan(d.topology, d.tuning)
	findings := compareExchanges(b.exchanges, exchanges)
	findings = append(findings, compareQueues(b.queues, queues)...)
	findings = append(findings, compareBindings(b, bindings)...)
	return append(findings, comparePolicies(policies(d.topology), queues)...), nil
}

func compareExchanges(want []exchangeSpec, have []management.Exchange) (findings []Finding) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h management.Exchange) bool { return h.Name == w.name })
		switch {
		case i < 0:
			findings = append(findings, Finding{"exchange " + w.name + " is missing", "restart a service: it declares the exchange"})
		case have[i].Type != w.kind || !have[i].Durable:
			findings = append(findings, Finding{
				fmt.Sprintf("exchange %s is of type %s, want durable %s", w.name, have[i].Type, w.kind),
				"stop the services, delete the exchange, start them again, or choose a TOPOLOGY_PREFIX",
			})
		}
	}
	return findings
}
