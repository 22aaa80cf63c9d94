package event

import (
	"fmt"
	"regexp"
)

// A Topology names what the services use at the broker. The zero value has
// the plain names; a Prefix lets several cities share one broker.
type Topology struct {
	prefix string
}

// prefixPattern keeps a prefixed name far below AMQP's 255 bytes and free of
// the characters that topic bindings give a meaning.
var prefixPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,30}\.$`)

// NewTopology returns the names under prefix, which is empty or a lower-case
// word that ends in a dot, such as "bandung.".
func NewTopology(prefix string) (Topology, error) {
	if prefix != "" && !prefixPattern.MatchString(prefix) {
		return Topology{}, fmt.Errorf("topology prefix %q: must be a lower-case word that ends in a dot, such as \"bandung.\"", prefix)
	}
	return Topology{prefix}, nil
}

// Exchange is the durable topic exchange that the relay publishes to. The
// publisher declares it.
func (t Topology) Exchange() string { return t.prefix + "cityconnect.notifications" }

// DeadLetterExchange is the durable topic exchange of what could not be
// handled. The publisher declares it.
func (t Topology) DeadLetterExchange() string { return t.prefix + "cityconnect.notifications.dlx" }

// LiveExchange is the fanout exchange on which the replicas of notification-service
// announce their commits to each other.
func (t Topology) LiveExchange() string { return t.prefix + "cityconnect.live" }

// ProgressExchange is the fanout exchange on which the photo worker sends its
// progress to the replicas of notification-service.
func (t Topology) ProgressExchange() string { return t.prefix + "cityconnect.progress" }

// WakeExchange is the fanout exchange on which the replicas of the relay tell
// each other which parts of the outbox have something new.
func (t Topology) WakeExchange() string { return t.prefix + "cityconnect.wake" }

// OutboxExchange is a fanout exchange to which nobody publishes. The relay makes
// it at each broker that it publishes to, and recognises the broker by it.
func (t Topology) OutboxExchange() string { return t.prefix + "cityconnect.outbox" }

// Gate is a durable queue that refuses every message. The consumers bind it to the
// exchange while they make queues that get the same messages.
func (t Topology) Gate() string { return t.prefix + "queue.gate" }

// Retry is the fanout exchange, and the queue behind it, in which a message
// waits for delay, such as "1s", until it goes back to the queue named by its
// routing key.
func (t Topology) Retry(delay string) string { return t.prefix + "cityconnect.retry." + delay }

// Queue is the durable quorum queue of key's messages. The consumer declares
// it. It panics for a key outside AllKeys: the set is closed.
func (t Topology) Queue(key Key) string {
	for _, known := range types {
		if known.key == key {
			return t.prefix + known.queue
		}
	}
	panic("event: no queue for key " + string(key))
}

// Named is the queue called name, such as "queue.webhooks", that a group of
// consumers has for itself.
func (t Topology) Named(name string) string { return t.prefix + name }

// ManifestQueue is the durable quorum queue in which a group of consumers gets
// manifests.
func (t Topology) ManifestQueue(group string) string {
	return fmt.Sprintf("%squeue.reconciliation_%s", t.prefix, group)
}

// DeadLetterQueue is where the dead letters of queue wait.
func (t Topology) DeadLetterQueue(queue string) string { return queue + ".dlq" }

// DeadLetterKey is the routing key of the dead letters of queue.
func (t Topology) DeadLetterKey(queue string) string { return "dlq." + queue }
