package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

func compareExchanges(want []exchangeSpec, have []exchange) (findings []Finding) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h exchange) bool { return h.Name == w.name })
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

func compareQueues(want []queueSpec, have []queue) (findings []Finding) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h queue) bool { return h.Name == w.name })
		if i < 0 {
			findings = append(findings, Finding{"queue " + w.name + " is missing", "restart notification-service: it declares the queue"})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(w.args)) {
			if got := have[i].Arguments[name]; !sameSetting(got, w.args[name]) {
				findings = append(findings, Finding{
					fmt.Sprintf("queue %s has %s = %v, want %v", w.name, name, got, w.args[name]),
					"arguments cannot be changed: drain and delete the queue, then restart notification-service",
				})
			}
		}
	}
	return findings
}

// compareBindings wants ours, and no other on the retry exchanges: a second
// queue there would make two messages of one.
func (t *Topology) compareBindings(have []binding) (findings []Finding) {
	for _, w := range t.bindings {
		found := slices.ContainsFunc(have, func(h binding) bool {
			return h.Source == w.exchange && h.Destination == w.queue && h.Kind == "queue" && h.Key == w.key
		})
		if !found {
			findings = append(findings, Finding{
				fmt.Sprintf("queue %s is not bound to %s by %q", w.queue, w.exchange, w.key),
				"bind it, or restart notification-service: it binds the queue",
			})
		}
	}
	for _, e := range t.exchanges {
		for _, h := range have {
			if h.Source == e.name && e.kind == amqp.ExchangeFanout && h.Destination != e.name {
				findings = append(findings, Finding{
					fmt.Sprintf("%s %s is bound to %s, and gets a copy of every retry", h.Kind, h.Destination, e.name),
					"remove that binding",
				})
			}
		}
	}
	return findings
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
