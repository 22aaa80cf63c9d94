// Package reconciliation compares what the publisher says that it published with what
// a group of consumers has, so that a message that got lost is named.
//
// The publisher sends a manifest each minute (event.Manifest), and a group receives it in a
// queue of its own, so that it counts on nothing that could have lost the
// messages as well. A message is accounted for if it had its effect, is or was a dead
// letter, or is parked. What is not accounted for is looked for again, as it may be on its
// way, and is missing when all that could hold it up is over.
//
//	           check                        all accounted for
//	waiting ───────────► what is left ──────────────────────► complete
//	 ▲ ▲                      │ │ │                              ▲
//	 │ └── later, or queue ───┘ │ └─ explained ─► unknown ───────┤
//	 │     not seen empty       │                    ▲           │
//	 │                          ▼                    ▼           │
//	 │                       missing ◄───────────────┴───────────┘
//	 └ received                  looked at again until they are too old
//
// A difference is explained if the group's database was restored since, or while
// the publisher publishes again what its broker has lost.
//
// The package promises that a message that is on its way, or that somebody has dealt
// with, is not said to be missing. It does not prove that an effect was right, nor that
// the publisher had a row for each change: that is what their transactions are for.
package reconciliation

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/event"
)

// A State is what is known of the messages of a manifest.
type State string

// The states.
const (
	Waiting  State = "waiting"  // the next check may find what is left
	Complete State = "complete" // the group has everything
	Missing  State = "missing"  // some got lost
	Unknown  State = "unknown"  // what is left is explained by a restore or a broker that lost its disk
)

const (
	// lookBack is for how long missing messages are looked for again: they may be
	// published again, or replayed.
	lookBack = 72 * time.Hour
	// late is how much later than planned a check may be. What held it up may have held
	// up the messages, too: then it counts as none.
	late = time.Minute
	// emptyFor is how old the sight of an empty queue may be.
	emptyFor = time.Minute
	// putOffFor is how old the sight of a message may be that its consumer has put off.
	// It comes again within seconds, if its queue is empty.
	putOffFor = 10 * time.Minute
	// gapGrace is how long after its successor a manifest may come.
	gapGrace = 5 * time.Minute
)

// waits returns the pauses before the checks, of which the last is after that time: a
// message may be retried in between, for as long as all its retries take.
func waits(after time.Duration, retries []time.Duration) []time.Duration {
	total := after / 5
	for _, delay := range retries {
		total += delay
	}
	return []time.Duration{after / 10, after / 10, after / 5, max(after*3/5, total)}
}

// A Queue is one whose messages are compared.
type Queue struct {
	Name string // at the broker
	Keys []event.Key
}

// An assessment is what a check found out about a manifest.
type assessment struct {
	state     State         // before
	checks    int           // that counted before
	left      int           // messages that are not accounted for
	overdue   time.Duration // how much later than planned this check is
	age       time.Duration // of the manifest
	drained   bool          // the queues of what is left were seen empty a moment ago, and nothing of it was put off
	explained bool          // by a restore, or by a broker that lost its disk
}

// judge returns the state after a check, how many checks count, and when the next is; 0 is
// never. Missing messages are looked for again after each recheck.
func (a assessment) judge(waits []time.Duration, recheck time.Duration) (state State, checks int, next time.Duration) {
	last := len(waits) - 1
	switch {
	case a.left == 0:
		return Complete, a.checks, 0
	case a.overdue > late: // nobody knows for how long the messages could move
		return a.state, a.checks, waits[a.checks]
	case a.checks < last:
		return Waiting, a.checks + 1, waits[a.checks+1]
	case !a.drained && !a.explained: // they may wait in the queue
		return a.state, a.checks, waits[last]
	}
	state = Missing
	if a.explained {
		state = Unknown
	}
	if a.age > lookBack {
		return state, a.checks, 0
	}
	return state, a.checks, recheck
}
