package topology

import (
	"maps"
	"regexp"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	// deliveryLimit is the backstop for a message that kills processes before
	// it can be noted: the broker itself makes it a dead letter.
	deliveryLimit = 20
	// maxBytes is where a queue refuses more. It is far above what any backlog
	// should reach, because a refusal costs the publisher an attempt; a disk
	// that fills earlier makes it wait instead.
	maxBytes = int64(10) << 30
	// policyPriority lets an operator's own policy go first.
	policyPriority = 5
)

// safe is what the definitions of our policies have in common. At-least-once
// dead-lettering keeps a message in its queue until the one behind the
// dead-letter exchange has it; it needs reject-publish.
var safe = rabbithole.PolicyDefinition{
	"dead-letter-strategy": "at-least-once", "overflow": "reject-publish", "max-length-bytes": maxBytes,
}

// policies returns the policies of our queues. A queue obeys one policy only,
// so the patterns do not overlap.
func policies(names event.Topology) []rabbithole.Policy {
	var queues []string
	for _, key := range event.Keys() {
		queues = append(queues, regexp.QuoteMeta(names.Queue(key)))
	}
	limited := maps.Clone(safe)
	limited["delivery-limit"] = deliveryLimit
	prefix := strings.TrimSuffix(names.Exchange(), "cityconnect.notifications")
	return []rabbithole.Policy{
		{
			Name: prefix + "cityconnect-queues", Pattern: "^(" + strings.Join(queues, "|") + ")$",
			ApplyTo: string(rabbithole.PolicyTargetQueues), Priority: policyPriority, Definition: limited,
		},
		{
			Name: prefix + "cityconnect-retry", Pattern: "^" + regexp.QuoteMeta(names.Retry("")) + "[0-9a-z]+$",
			ApplyTo: string(rabbithole.PolicyTargetQueues), Priority: policyPriority, Definition: safe,
		},
	}
}

// applied returns the policy of have that the quorum queue name obeys: the
// matching one of the highest priority.
func applied(have []rabbithole.Policy, vhost, name string) (p rabbithole.Policy) {
	found := false
	for _, h := range have {
		if h.DoesMatchName(vhost, name, rabbithole.PolicyTargetQuorumQueues) && (!found || h.Priority > p.Priority) {
			p, found = h, true
		}
	}
	return p
}
