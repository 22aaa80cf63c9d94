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

// firstGroup is the group whose policy has no name of a group in its own:
// brokers have it since there was no other.
const firstGroup = "notifications"

// policies returns one policy for the queues of each group, and one for the
// retry queues, which all groups share. A queue obeys one policy only, so the
// patterns do not overlap; one policy for all groups would differ between
// processes with different groups.
func policies(names event.Topology, groups []Group) []rabbithole.Policy {
	limited := maps.Clone(safe)
	limited["delivery-limit"] = deliveryLimit
	all := []rabbithole.Policy{{
		Name: names.Named("cityconnect-retry"), Pattern: "^" + regexp.QuoteMeta(names.Retry("")) + "[0-9a-z]+$",
		ApplyTo: string(rabbithole.PolicyTargetQueues), Priority: policyPriority, Definition: safe,
	}}
	for _, g := range groups {
		name := names.Named("cityconnect-queues")
		if g.Name != firstGroup {
			name += "-" + g.Name
		}
		var queues []string
		for _, q := range g.Queues {
			queues = append(queues, regexp.QuoteMeta(names.Named(q.Name)))
		}
		all = append(all, rabbithole.Policy{
			Name: name, Pattern: "^(" + strings.Join(queues, "|") + ")$",
			ApplyTo: string(rabbithole.PolicyTargetQueues), Priority: policyPriority, Definition: limited,
		})
	}
	return all
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
