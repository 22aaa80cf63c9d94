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
//
// Operators' policies apply besides, and override: of those management's word is
// taken. Whatever makes a queue lose or turn away messages is found, also if ours
// says nothing about it. A queue of another process has that process's policy, which
// is not known here, and that process compares it.
func (need needed) comparePolicies(policies, have []rabbithole.Policy, effective map[string]effectivePolicy, vhost string) (findings []Finding) {
	for _, q := range need.queues {
		if q.elsewhere {
			continue
		}
		var want rabbithole.Policy // of ours; dead-letter queues have none
		for _, p := range policies {
			if regexp.MustCompile(p.Pattern).MatchString(q.name) {
				want = p
			}
		}
		got := applied(have, vhost, q.name)
		remedy := func(setting string) string {
			return fmt.Sprintf("let policy %s apply to the queue, or set %s in yours", want.Name, setting)
		}
		unwanted := func(setting string) string {
			return fmt.Sprintf("take %s out of policy %s, or the queue out of its pattern", setting, got.Name)
		}
		if e, ok := effective[q.name]; ok {
			got.Name, got.Definition = e.operator, e.definition
			unwanted = func(setting string) string {
				return fmt.Sprintf("take %s out of the operator policy %s, or the queue out of its pattern", setting, e.operator)
			}
			remedy = unwanted
		}
		for _, setting := range losing {
			if value, set := got.Definition[setting]; set && want.Definition[setting] == nil {
				findings = append(findings, Finding{
					fmt.Sprintf("queue %s has %s = %v by policy %q, by which messages are lost or moved", q.name, setting, value, got.Name),
					unwanted(setting),
				})
			}
		}
		for _, setting := range slices.Sorted(maps.Keys(want.Definition)) {
			if !sameSetting(got.Definition[setting], want.Definition[setting]) {
				findings = append(findings, Finding{
					fmt.Sprintf("queue %s has %s = %v by policy %q, must be %v", q.name, setting, got.Definition[setting], got.Name, want.Definition[setting]),
					remedy(setting),
				})
			}
		}
	}
	return findings
}

// losing are the settings of policies by which queues drop, expire or move
// messages, or are deleted.
var losing = []string{
	"message-ttl", "expires", "max-length", "max-length-bytes", "max-in-memory-length", "max-in-memory-bytes",
	"dead-letter-exchange", "dead-letter-routing-key", "delivery-limit",
}

// sameSetting compares what the API told with what it should be: its numbers
// come as floating point.
func sameSetting(got, want any) bool {
	if number, ok := got.(float64); ok {
		return fmt.Sprint(int64(number)) == fmt.Sprint(want)
	}
	return got == want
}
