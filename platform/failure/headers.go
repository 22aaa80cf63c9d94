package failure

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
)

// The headers of a message that failed. docs/recoverability.md explains them to
// readers of the broker's queues.
const (
	RetriesHeader            = "x-retries"              // how often it was put off, an integer
	RetryReasonHeader        = "x-retry-reason"         // why, the last time: "class: text"
	OriginalExchangeHeader   = "x-original-exchange"    // where it was first published
	OriginalRoutingKeyHeader = "x-original-routing-key" // and under which key
	FirstFailedAtHeader      = "x-first-failed-at"      // RFC 3339, UTC
	OriginalQueueHeader      = "x-original-queue"       // the queue whose consumer gave up
	FinalErrorHeader         = "x-final-error"          // why, as text
	FinalErrorClassHeader    = "x-final-error-class"    // a Class
	FinalRetryCountHeader    = "x-final-retry-count"    // an integer
	FailedAtHeader           = "x-failed-at"            // RFC 3339, UTC
	ReplayHeader             = "x-replay-id"            // which replay sent it again
	WaitedHeader             = "x-waited"               // how long it was parked for the message before it, in milliseconds
	CycleHeader              = "x-death"                // the broker's own record
)

// A Record describes a failed attempt at a delivery.
type Record struct {
	Queue string
	Class Class
	Text  string // safe to show, see Describe
	At    time.Time
}

// Retries returns how often the message was put off already. A header without a
// sensible number counts as none: anyone can write headers.
func Retries(headers amqp.Table) int {
	return number(headers[RetriesHeader])
}

// Waited returns for how long the message was parked for the one before it. A header
// without a sensible number counts as none.
func Waited(headers amqp.Table) time.Duration {
	return time.Duration(number(headers[WaitedHeader])) * time.Millisecond
}

// number returns the value of a header that is a number, or 0.
func number(value any) int {
	switch n := value.(type) {
	case int32:
		return max(int(n), 0)
	case int64:
		return int(min(max(n, 0), 1<<20))
	case string:
		parsed, _ := strconv.Atoi(n)
		return min(max(parsed, 0), 1<<20)
	}
	return 0
}

// Retry returns the message to publish to a retry queue after r.
func Retry(d *amqp.Delivery, r Record) amqp.Publishing {
	msg := publishing(d)
	msg.Headers[RetriesHeader] = int32(Retries(d.Headers) + 1)
	msg.Headers[RetryReasonHeader] = string(r.Class) + ": " + r.Text
	remember(msg.Headers, d, r)
	return msg
}

// Postpone returns the message to publish to a retry queue when it has not failed.
func Postpone(d *amqp.Delivery) amqp.Publishing {
	msg := publishing(d)
	setDefault(msg.Headers, OriginalExchangeHeader, d.Exchange)
	setDefault(msg.Headers, OriginalRoutingKeyHeader, d.RoutingKey)
	return msg
}

// DeadLetter returns the message to publish to the dead-letter exchange.
func DeadLetter(d *amqp.Delivery, r Record) amqp.Publishing {
	msg := publishing(d)
	remember(msg.Headers, d, r)
	msg.Headers[OriginalQueueHeader] = r.Queue
	msg.Headers[FinalErrorHeader] = r.Text
	msg.Headers[FinalErrorClassHeader] = string(r.Class)
	msg.Headers[FinalRetryCountHeader] = int32(Retries(d.Headers))
	msg.Headers[FailedAtHeader] = stamp(r.At)
	return msg
}

// lifeHeaders describe the life that ended in a dead letter.
var lifeHeaders = []string{
	RetriesHeader, RetryReasonHeader, FirstFailedAtHeader, OriginalQueueHeader,
	FinalErrorHeader, FinalErrorClassHeader, FinalRetryCountHeader, FailedAtHeader, ReplayHeader, WaitedHeader,
}

// ourHeaders are those that the contract or this package defines.
var ourHeaders = append([]string{event.RecipientHeader, event.TraceHeader, event.NotBeforeHeader, OriginalExchangeHeader, OriginalRoutingKeyHeader}, lifeHeaders...)

// Replay strips headers of everything that belongs to the life which ended
// in the dead letter, so that the message starts over.
func Replay(headers amqp.Table) amqp.Table {
	first := Strip(headers)
	for _, name := range lifeHeaders {
		delete(first, name)
	}
	return first
}

// Strip returns a copy of headers without the broker's own records.
func Strip(headers amqp.Table) amqp.Table {
	kept := make(amqp.Table, len(headers)+8)
	maps.Copy(kept, headers)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return isBrokers(name) })
	return kept
}

// Essential returns only those of headers that the contract or this package
// defines: what remains of a message whose other headers are too large.
func Essential(headers amqp.Table) amqp.Table {
	kept := make(amqp.Table)
	for _, name := range ourHeaders {
		if value, ok := headers[name]; ok {
			kept[name] = value
		}
	}
	return kept
}

// KnownHeader reports whether the contract, this package or the broker defines
// the header called name. Others may hold anything.
func KnownHeader(name string) bool { return slices.Contains(ourHeaders, name) || isBrokers(name) }

// isBrokers reports whether the header called name is the broker's record. A
// message that is published again must not keep it: a queue that finds itself
// in x-death may drop the message in silence, as a cycle.
func isBrokers(name string) bool {
	return name == CycleHeader || name == "x-delivery-count" || name == "x-acquired-count" ||
		strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// publishing copies what belongs to the message. Its expiration does not: it was
// meant for the queue that the message has left.
func publishing(d *amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		Headers:         Strip(d.Headers),
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		CorrelationId:   d.CorrelationId,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
}

// remember notes where the message came from, the first time that it fails.
func remember(headers amqp.Table, d *amqp.Delivery, r Record) {
	setDefault(headers, OriginalExchangeHeader, d.Exchange)
	setDefault(headers, OriginalRoutingKeyHeader, d.RoutingKey)
	setDefault(headers, FirstFailedAtHeader, stamp(r.At))
}

func setDefault(headers amqp.Table, name, value string) {
	if _, ok := headers[name]; !ok {
		headers[name] = value
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
