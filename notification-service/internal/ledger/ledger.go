// Package ledger delivers messages that must reach a target outside, such as a
// webhook, over minutes or days. A delivery is a row that is written in the
// transaction of the effect; the Dispatcher sends due deliveries and records their
// outcomes.
//
// It promises:
//
//   - No delivery is lost. A row waits until it is delivered, given up for a
//     stated reason, held or cancelled. A process that dies with deliveries in
//     hand leaves them waiting, so that they are sent again, under the same
//     message id.
//   - No lane holds up another. A lane has a pace of its own: an endpoint, a mail
//     host. One worker leases it, so that its limit of requests at once holds over
//     all workers, and one that does not answer keeps no more than that limit
//     busy.
//   - A failing lane costs little: its circuit opens, and while it is open no
//     delivery spends an attempt.
//
// The package knows no channel. A Channel says how the deliveries of a lane are
// sent; package webhook has the first.
package ledger

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// A Delivery is a row that is due, claimed by the worker that leases its lane.
type Delivery struct {
	ID        int64
	Lane      string
	Target    string // the channel's name of the receiver
	MessageID string // of the event: the receiver recognises a repetition by it
	Kind      string
	Body      []byte // the bytes to send
	TraceID   string // of the request that caused the event; "" if it is not known
	Attempts  int    // how often it was sent before
	Retries   int    // how many pauses of the schedule it has had
	// Uncertain says that an attempt before this one ended with
	// ClassUncertain: the target may have it.
	Uncertain bool
	// Remaining is for how long it is tried after it was claimed. With none
	// left it is given up without being sent.
	Remaining time.Duration
}

// A Verdict sorts the answers of targets by their consequences.
type Verdict string

// The verdicts.
const (
	// Delivered: the target has it.
	Delivered Verdict = "delivered"
	// Failed: the target, or the way there, failed. The delivery takes its next
	// place in the schedule, and the lane counts the failure.
	Failed Verdict = "failed"
	// TooMany: the target asks for fewer. The delivery takes its next place in the
	// schedule, the lane slows down, and nothing counts against the target.
	TooMany Verdict = "too_many"
	// Throttled: the target takes fewer now than are sent, whichever they are.
	// The lane slows down, and nothing is counted for the delivery.
	Throttled Verdict = "throttled"
	// Postponed: the target answers, and does not take this one now. The
	// delivery takes its next place in the schedule, and nothing counts against
	// the target.
	Postponed Verdict = "postponed"
	// TooEarly: the target asks for this one later. Nothing is counted.
	TooEarly Verdict = "too_early"
	// Refused: the target answered, and will never take this one.
	Refused Verdict = "refused"
	// Gone: the target has been removed.
	Gone Verdict = "gone"
	// Unsent: nothing left this process, for a reason of its own. The delivery
	// stays as it was.
	Unsent Verdict = "unsent"
	// Expired: its time was over before it was sent.
	Expired Verdict = "expired"
)

// ClassUncertain is the class of an attempt after which the target may have the
// delivery or not: all of it was sent, and the answer did not arrive.
const ClassUncertain = "uncertain"

// An Answer is how one attempt went.
type Answer struct {
	Verdict  Verdict
	After    time.Duration // the pause that the target asks for; 0 means none
	Status   int           // of HTTP, or of SMTP; 0 without an answer
	Class    string        // a word for metrics and logs, such as "timeout"
	Error    string        // for operators; neither a person nor an address in it
	Response string        // the beginning of what the target answered, for operators
	At       time.Time
	Duration time.Duration
}

// A Hold says whether the deliveries of a lane are wanted.
type Hold string

// The holds.
const (
	Open   Hold = "open"
	Held   Hold = "held"   // later: they are kept
	Closed Hold = "closed" // never: they are cancelled
)

// A Lane is what its channel says of a lane.
type Lane struct {
	Hold     Hold
	InFlight int  // deliveries at once; at least 1
	ByReport bool // a delivery waits while an earlier one of its report does
	// Send makes one attempt, within ctx.
	Send func(ctx context.Context, d *Delivery) Answer
}

// A Channel has the targets of one kind of deliveries.
type Channel interface {
	// Name is the channel's name in the tables.
	Name() string
	// Personal reports whether the targets are people's. Metrics and logs then
	// have figures of crowds alone (package crowd), and no lanes.
	Personal() bool
	// Lanes returns what holds now for each of the named lanes. One that is
	// missing in the result has lost its target.
	Lanes(ctx context.Context, names []string) (map[string]Lane, error)
	// Disable stops deliveries in a lane until an operator enables it again, and
	// notifies the operators. Gone says that the target said so itself; otherwise it
	// has failed for the configured time. It may be called again for a lane that is
	// disabled.
	Disable(ctx context.Context, lane string, gone bool) error
}

// A LeasedLane is a lane that a worker leases, as it was left.
type LeasedLane struct {
	Name       string
	Rate       float64       // deliveries a second; 0 is any
	Failures   int           // in a row
	FailingFor time.Duration // since the first of them; 0 when the last attempt was a success
	OpenFor    time.Duration // how long its circuit stays open; 0 when it is closed
}

// A Claim asks for due deliveries of a leased lane.
type Claim struct {
	Lane     string
	Limit    int
	ByReport bool
}

// A State is that of a delivery after an attempt.
type State string

// The states in which an attempt leaves a delivery.
const (
	Waiting State = "waiting"
	Done    State = "done"
	Dead    State = "dead"
)

// An Outcome is what an attempt changes in a delivery.
type Outcome struct {
	ID       int64
	Attempts int // before this one: an outcome that is recorded twice changes nothing
	State    State
	Delay    time.Duration // until it is due again, when it is Waiting
	Sent     bool          // an attempt is written down
	Retried  bool          // a pause of the schedule is used up
	Answer   Answer
}

// A LaneState is what a worker writes down of a lane that it leases.
type LaneState struct {
	Name     string
	Rate     float64
	Failures int
	Failing  bool          // the last attempt failed
	OpenFor  time.Duration // 0 closes the circuit
	// Succeeded and Failed say what happened since the last time.
	Succeeded, Failed bool
}

// A Store keeps deliveries and lanes. Its clock alone decides which deliveries are due
// and which lease is over.
type Store interface {
	// DueLanes returns the lanes of the channel in which something is due.
	DueLanes(ctx context.Context, channel string) ([]string, error)
	// Lease leases those of the lanes that no other worker does, new or again,
	// for ttl.
	Lease(ctx context.Context, channel string, owner uuid.UUID, lanes []string, ttl time.Duration) ([]LeasedLane, error)
	// Release gives lanes back.
	Release(ctx context.Context, channel string, owner uuid.UUID, lanes []string) error
	// Claim returns due deliveries of leased lanes, the longest due first,
	// without those in hand. It writes nothing: the lease says whose they are.
	Claim(ctx context.Context, channel string, claims []Claim, inHand []int64) ([]Delivery, error)
	// Record writes outcomes and lanes down, in one transaction. It changes no
	// delivery that was cancelled, and no lane that is another's.
	Record(ctx context.Context, channel string, owner uuid.UUID, outcomes []Outcome, lanes []LaneState) error
	// Withdraw holds or cancels some of what waits in the lanes, and reports
	// whether more may wait there.
	Withdraw(ctx context.Context, channel string, hold Hold, lanes []string) (more bool, err error)
}
