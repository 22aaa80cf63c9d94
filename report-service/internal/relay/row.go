package relay

import (
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// appID tells consumers who published.
const appID = "report-service"

// A row is an outbox row in progress: read, and not yet finished.
type row struct {
	lease     shards.Lease // under which it was read
	read      int64        // number of the read that found it
	seq       int64
	id        uuid.UUID
	key       string // routing key
	report    uuid.UUID
	payload   []byte
	trace     pgtype.Text // the headers of the contract that the row has
	recipient pgtype.Text
	created   time.Time
	retries   int

	state       rowState
	publishedAt time.Time
}

// A rowState is the state of a row in progress.
//
//	   ┌──────────────── pending in the table ◄────────────────┐
//	   │ add                                                   │ release
//	   ▼                                                       │
//	 queued ──── report blocked, circuit open, lease gone ────►│
//	   │ │                                                     │
//	   │ └─ cannot be published: too large ──┐                 │
//	   │ publish                             │                 │
//	   ▼                                     ▼                 │
//	inFlight ─── confirm, nack, return ─► recording ─ refused ►│
//	   │                                     │                 │
//	   └─ connection lost, circuit opened ───┼────────────────►┘
//	                                         │ published
//	                                         ▼ finish
//	                                  done with the row
//
// A probe of an open circuit publishes its row separately, and enters at
// recording.
type rowState uint8

const (
	queued    rowState = iota // waits to be published
	inFlight                  // published, waits for the broker's answer
	recording                 // answered, waits until the result is in the table
	rowStates
)

// A rowTracker keeps the rows of a session, and moves them from state to state.
// It belongs to the session's goroutine.
type rowTracker struct {
	leases    *shards.Leases
	watermark *watermark
	sending   *atomic.Int64 // counts rows in flight, for other goroutines to see

	bySeq map[int64]*row
	queue []*row // the queued ones, in the order of publishing
	count [rowStates]int
	// blocked are the reports that have a refused row, each with the number of
	// the last read that began before the refusal was recorded. Their later
	// rows wait for the next read.
	blocked map[uuid.UUID]int64
}

// add queues a row, and reports whether its lease allows that.
func (t *rowTracker) add(r *row) bool {
	if !t.leases.Begin(r.lease) {
		return false
	}
	t.bySeq[r.seq] = r
	t.queue = append(t.queue, r)
	t.count[queued]++
	return true
}

// addProbed takes a row that a probe published to recording. A row whose shard
// now belongs to another replica is recorded as well, without being tracked:
// the message is out, and recording it makes a second publish less likely.
func (t *rowTracker) addProbed(r *row) {
	if t.leases.Begin(r.lease) {
		t.bySeq[r.seq] = r
	}
	r.state = recording
	t.count[recording]++
}

// next takes the first row from the queue. It stays in state queued until it is
// moved or released.
func (t *rowTracker) next() *row {
	r := t.queue[0]
	t.queue = t.queue[1:]
	return r
}

// move changes the state of r.
func (t *rowTracker) move(r *row, to rowState) {
	if r.state == inFlight {
		t.sending.Add(-1)
	}
	if to == inFlight {
		t.sending.Add(1)
	}
	t.count[r.state]--
	t.count[to]++
	r.state = to
}

// release leaves a row that is still pending to a later read.
func (t *rowTracker) release(r *row) {
	t.watermark.lower(r)
	t.finish(r)
}

// finish ends the tracking of a row.
func (t *rowTracker) finish(r *row) {
	if r.state == inFlight {
		t.sending.Add(-1)
	}
	t.count[r.state]--
	if t.bySeq[r.seq] == r {
		delete(t.bySeq, r.seq)
		t.leases.End(r.lease)
	}
}

// block makes the later rows of r's report wait for a read with a number above
// until.
func (t *rowTracker) block(r *row, until int64) { t.blocked[r.report] = until }

// unblock unblocks the reports that wait for a read of this number.
func (t *rowTracker) unblock(read int64) {
	for report, until := range t.blocked {
		if read > until {
			delete(t.blocked, report)
		}
	}
}

// isBlocked reports whether r must wait because the broker refused an earlier
// row of its report after r was read.
func (t *rowTracker) isBlocked(r *row) bool {
	until, blocked := t.blocked[r.report]
	return blocked && r.read <= until
}

// releaseUnowned releases the queued rows whose lease is gone or releasing.
func (t *rowTracker) releaseUnowned() {
	kept := t.queue[:0]
	for _, r := range t.queue {
		if t.leases.MayPublish(r.lease) {
			kept = append(kept, r)
		} else {
			t.release(r)
		}
	}
	clear(t.queue[len(kept):])
	t.queue = kept
}

// close releases the remaining rows when a session ends: lost, unsent or
// unrecorded ones. Rows in progress would prevent the release of their shard.
func (t *rowTracker) close() {
	for _, r := range t.bySeq {
		t.finish(r)
	}
}

// message returns the message of the row.
func (r *row) message() amqp.Publishing {
	headers := make(amqp.Table, 2)
	if r.trace.Valid {
		headers[event.TraceHeader] = r.trace.String
	}
	if r.recipient.Valid {
		headers[event.RecipientHeader] = r.recipient.String
	}
	return amqp.Publishing{
		MessageId:    r.id.String(),
		Type:         r.key,
		ContentType:  "application/json",
		Timestamp:    r.created,
		DeliveryMode: amqp.Persistent,
		AppId:        appID,
		Headers:      headers,
		Body:         r.payload,
	}
}
