package deadletter

import (
	"time"

	"github.com/google/uuid"
)

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay. A canary that fails stops it.
//
//	Running ◄──► Paused
//	   │           │
//	   └─────┬─────┘
//	         └──► Done, Stopped or Cancelled
const (
	Running   ReplayState = "running"
	Paused    ReplayState = "paused"
	Stopped   ReplayState = "stopped"
	Cancelled ReplayState = "cancelled"
	Done      ReplayState = "done"
)

// A ReplayRequest asks for a replay. The audit log keeps it as JSON.
type ReplayRequest struct {
	Selection Selection `json:"selection"`
	Limit     int       `json:"limit,omitempty"`      // 0 is all
	PerSecond int       `json:"rate_per_s,omitempty"` // 0 is as fast as it goes
	Canary    int       `json:"canary,omitempty"`     // so many first, the others only if these succeed
}

// A Replay sends dead letters to their queues again.
type Replay struct {
	ID        uuid.UUID
	CreatedAt time.Time
	Selection Selection
	State     ReplayState
	Total     int
	PerSecond int
	Canary    int
	Reason    string
	EndedAt   *time.Time
	Actor     string   // the operator who began it; empty once the audit log has forgotten
	Queues    []string // of its dead letters, where the selection names ids
	Causes    []string // likewise
	Taking    bool     // it has not taken all of its dead letters yet, and sends none
	Reopening bool     // it has ended, and what was not sent is being opened
	Progress
}

// Progress counts the dead letters of a replay by state. Those that are neither
// pending, in flight, resolved nor failed were taken out by hand.
type Progress struct {
	Pending  int // not sent yet
	InFlight int // sent, and neither resolved nor failed yet
	Resolved int
	Failed   int // came back
	LastSent *time.Time
}

// Sent returns how many were sent.
func (p Progress) Sent() int { return p.InFlight + p.Resolved + p.Failed }

// settleTimeout is how long a sent dead letter may neither succeed nor come
// back. It outlasts the delays of every schedule that may be configured; after that
// something is wrong.
const settleTimeout = 10 * time.Minute

// maxPage bounds how many dead letters are sent between two checks of the
// replay's state, and so how soon a pause takes effect.
const maxPage = 500

// A step is what a replay does next.
type step struct {
	send   int         // so many dead letters, if there are as many
	state  ReplayState // the state to go into, or empty
	reason string
}

// next decides. It is a function of the database's state alone, so that any
// replica can go on at any time.
func (r *Replay) next(now time.Time) step {
	canary := min(r.Canary, r.Total)
	testing := canary > 0 && r.Resolved < canary
	late := r.LastSent != nil && now.Sub(*r.LastSent) > settleTimeout
	switch {
	case testing && r.Failed > 0:
		return step{state: Stopped, reason: "the canary failed: the cause is still there"}
	case testing && r.Sent() < canary:
		return step{send: canary - r.Sent()}
	case testing && r.InFlight > 0 && late:
		return step{state: Stopped, reason: "the canary has neither succeeded nor come back"}
	case testing && r.InFlight > 0:
		return step{}
	case r.Pending > 0 && r.PerSecond == 0:
		return step{send: maxPage}
	case r.Pending > 0:
		return step{send: min(max(r.PerSecond/2, 1), maxPage)}
	case r.InFlight == 0 || late:
		return step{state: Done}
	}
	return step{}
}
