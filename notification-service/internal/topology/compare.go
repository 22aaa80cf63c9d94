package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// declaredSoon is the remedy of what is missing: the service's own.
const declaredSoon = "the service declares it within a minute; if it does not, look at its log for the broker's refusal"

// differences are what a check found. What is missing can be declared; what
// differs needs an operator.
type differences struct{ missing, differing []Finding }

func (d *differences) compareExchanges(want []exchangeSpec, have []exchange) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h exchange) bool { return h.Name == w.name })
		switch {
		case i < 0:
			d.missing = append(d.missing, Finding{"exchange " + w.name + " is missing", declaredSoon})
		case have[i].Type != w.kind || !have[i].Durable:
			d.differing = append(d.differing, Finding{
				fmt.Sprintf("exchange %s is of type %s, want durable %s", w.name, have[i].Type, w.kind),
				"stop the services, delete the exchange, start them again, or choose a TOPOLOGY_PREFIX",
			})
		}
	}
}

func (d *differences) compareQueues(want []queueSpec, have []queue) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h queue) bool { return h.Name == w.name })
		if i < 0 {
			d.missing = append(d.missing, Finding{"queue " + w.name + " is missing", declaredSoon})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(w.args)) {
			if got := have[i].Arguments[name]; !sameSetting(got, w.args[name]) {
				d.differing = append(d.differing, Finding{
					fmt.Sprintf("queue %s has %s = %v, want %v", w.name, name, got, w.args[name]),
					"arguments cannot be changed: drain and delete the queue, then restart notification-service",
				})
			}
		}
	}
}

// compareBindings wants ours, and no other on the retry exchanges: a second
// queue there would make two messages of one.
func (d *differences) compareBindings(t *Topology, have []binding) {
	for _, w := range t.bindings {
		found := slices.ContainsFunc(have, func(h binding) bool {
			return h.Source == w.exchange && h.Destination == w.queue && h.Kind == "queue" && h.Key == w.key
		})
		if !found {
			d.missing = append(d.missing, Finding{
				fmt.Sprintf("queue %s is not bound to %s by %q", w.queue, w.exchange, w.key),
				declaredSoon,
			})
		}
	}
	for _, e := range t.exchanges {
		for _, h := range have {
			if h.Source == e.name && e.kind == amqp.ExchangeFanout && h.Destination != e.name {
				d.differing = append(d.differing, Finding{
					fmt.Sprintf("%s %s is bound to %s, and gets a copy of every retry", h.Kind, h.Destination, e.name),
					"remove that binding",
				})
			}
		}
	}
}

// comparePolicies wants each queue that a policy of ours is for to obey it.
func comparePolicies(want map[string]policy, have []queue) (findings []Finding) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		pattern, err := regexp.Compile(want[name].Pattern)
		if err != nil {
			panic(err) // the patterns are ours
		}
		for _, q := range have {
			if !pattern.MatchString(q.Name) {
				continue
			}
			for _, setting := range slices.Sorted(maps.Keys(want[name].Definition)) {
				if wanted := want[name].Definition[setting]; !sameSetting(q.Effective[setting], wanted) {
					findings = append(findings, Finding{
						fmt.Sprintf("queue %s has %s = %v by policy %q, want %v", q.Name, setting, q.Effective[setting], q.Policy, wanted),
						fmt.Sprintf("let policy %s apply to the queue, or set %s in yours", name, setting),
					})
				}
			}
		}
	}
	return findings
}

// sameSetting compares what the API told with what we want: its numbers come
// as floating point.
func sameSetting(got, want any) bool {
	if number, ok := got.(float64); ok {
		return fmt.Sprint(int64(number)) == fmt.Sprint(want)
	}
	return got == want
}
