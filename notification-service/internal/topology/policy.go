package topology

import (
	"regexp"
	"strings"

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

// policies returns the policies of our queues by name. A queue obeys one
// policy only, so the patterns do not overlap.
//
// At-least-once dead-lettering keeps a message in its queue until the one
// behind the dead-letter exchange has it; it wants reject-publish.
func policies(t event.Topology) map[string]policy {
	var queues []string
	for _, key := range event.Keys() {
		queues = append(queues, regexp.QuoteMeta(t.Queue(key)))
	}
	prefix := strings.TrimSuffix(t.Exchange(), "cityconnect.notifications")
	safe := func(pattern string, more map[string]any) policy {
		definition := map[string]any{
			"dead-letter-strategy": "at-least-once", "overflow": "reject-publish", "max-length-bytes": maxBytes,
		}
		for name, value := range more {
			definition[name] = value
		}
		return policy{Pattern: pattern, ApplyTo: "queues", Priority: policyPriority, Definition: definition}
	}
	return map[string]policy{
		prefix + "cityconnect-queues": safe("^("+strings.Join(queues, "|")+")$", map[string]any{"delivery-limit": deliveryLimit}),
		prefix + "cityconnect-retry":  safe("^"+regexp.QuoteMeta(t.Retry(""))+"[0-9a-z]+$", nil),
	}
}
