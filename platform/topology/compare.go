package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"
)

// declaredSoon is the remedy for missing parts: the service declares them itself.
const declaredSoon = "the service declares it within a minute; if it does not, look at its log for the broker's refusal"

// compare returns the parts that are missing in have, which the service can declare,
// and those that differ, which an operator has to remedy.
func (need needed) compare(have snapshot) (missing, differing []Finding) {
	for _, e := range need.exchanges {
		i := slices.IndexFunc(have.exchanges, func(h rabbithole.ExchangeInfo) bool { return h.Name == e.name })
		switch {
		case i < 0:
			missing = append(missing, Finding{"exchange " + e.name + " is missing", declaredSoon})
		case have.exchanges[i].Type != e.kind || !have.exchanges[i].Durable:
			differing = append(differing, Finding{
				fmt.Sprintf("exchange %s is of type %s, must be durable %s", e.name, have.exchanges[i].Type, e.kind),
				"stop the services, delete the exchange, start them again, or choose a TOPOLOGY_PREFIX",
			})
		}
	}
	for _, q := range need.queues {
		i := slices.IndexFunc(have.queues, func(h rabbithole.QueueInfo) bool { return h.Name == q.name })
		if i < 0 {
			remedy := declaredSoon
			if _, deadLetters := q.args["x-dead-letter-routing-key"]; deadLetters { // a queue of a group
				remedy += "; what it held is published again by: report-service republish -since TIME"
			}
			missing = append(missing, Finding{"queue " + q.name + " is missing", remedy})
			continue
		}
		if q.elsewhere {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(q.args)) {
			if got := have.queues[i].Arguments[name]; !sameSetting(got, q.args[name]) {
				differing = append(differing, Finding{
					fmt.Sprintf("queue %s has %s = %v, must be %v", q.name, name, got, q.args[name]),
					"arguments cannot be changed: drain and delete the queue, then restart the service",
				})
			}
		}
	}
	for _, b := range slices.Concat(need.routes, need.bindings) {
		// The bindings of a queue whose node is down are not shown, and are still there.
		down := slices.ContainsFunc(have.queues, func(h rabbithole.QueueInfo) bool { return h.Name == b.queue && isDown(h) })
		if !down && !slices.ContainsFunc(have.bindings, b.is) {
			missing = append(missing, Finding{fmt.Sprintf("queue %s is not bound to %s by %q", b.queue, b.exchange, b.key), declaredSoon})
		}
	}
	differing = append(differing, need.copiedRetries(have.bindings)...)
	return missing, append(differing, need.compareCopies(have)...)
}

func (b bindingSpec) is(h rabbithole.BindingInfo) bool {
	return h.Source == b.exchange && h.Destination == b.queue && h.DestinationType == "queue" && h.RoutingKey == b.key
}

// copiedRetries finds bindings of others to our retry exchanges: a second
// queue there would make two messages of one.
func (need needed) copiedRetries(have []rabbithole.BindingInfo) (findings []Finding) {
	for _, e := range need.exchanges {
		for _, h := range have {
			if h.Source == e.name && e.kind == amqp.ExchangeFanout && h.Destination != e.name {
				findings = append(findings, Finding{
					fmt.Sprintf("%s %s is bound to %s, and gets a copy of every retry", h.DestinationType, h.Destination, e.name),
					"remove that binding",
				})
			}
		}
	}
	return findings
}

// comparePolicies finds queues whose policy does not have a setting of ours. It works
// out by itself which policy applies: management shows that at the queue only
// seconds after the policy was set or the broker started.
func (need needed) comparePolicies(policies, have []rabbithole.Policy, vhost string) (findings []Finding) {
	for _, want := range policies {
		pattern := regexp.MustCompile(want.Pattern)
		for _, q := range need.queues {
			if !pattern.MatchString(q.name) {
				continue
			}
			got := applied(have, vhost, q.name)
			for _, setting := range slices.Sorted(maps.Keys(want.Definition)) {
				if !sameSetting(got.Definition[setting], want.Definition[setting]) {
					findings = append(findings, Finding{
						fmt.Sprintf("queue %s has %s = %v by policy %q, must be %v", q.name, setting, got.Definition[setting], got.Name, want.Definition[setting]),
						fmt.Sprintf("let policy %s apply to the queue, or set %s in yours", want.Name, setting),
					})
				}
			}
		}
	}
	return findings
}

// sameSetting compares a value that the API returned with the one that it should
// be: the API's numbers are floating point.
func sameSetting(got, want any) bool {
	if number, ok := got.(float64); ok {
		return fmt.Sprint(int64(number)) == fmt.Sprint(want)
	}
	return got == want
}
