// Package monitor reads the state of a service's parts and of what it depends on
// every few seconds, for the operators' console.
//
// Each part is read by itself: a database that hangs delays no reading of the
// broker. Readings are kept in memory, so that they can be served while the
// database is away. A part whose source does not answer is unknown, never good.
package monitor

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

const (
	// readEvery and readTimeout let a change be seen within four seconds.
	readEvery, readTimeout = 2 * time.Second, 2 * time.Second
	// staleAfter is when a reading that has not ended counts as no answer.
	staleAfter = 8 * time.Second
)

// A State is how a part does.
type State string

// The states. Warning is worth a look, Bad is to be acted on now. Off is a part
// that is not configured.
const (
	Good    State = "good"
	Warning State = "warning"
	Bad     State = "bad"
	Unknown State = "unknown"
	Off     State = "off"
)

// A Cause says why a part is in its state; docs/openapi lists them.
type Cause string

// The causes of an unknown state: what did not answer.
const (
	NotRead    Cause = "not_read" // the service has just started
	NoDatabase Cause = "database"
	NoBroker   Cause = "broker"
)

// A Reading is what a part was found to be.
type Reading struct {
	State State
	Cause Cause    // empty when good or off
	Names []string // of what it concerns, such as queues; nobody's
	Count int64    // of what it concerns
}

// UnknownFor is the reading of a part whose source gave no answer.
func UnknownFor(source Cause) Reading { return Reading{State: Unknown, Cause: source} }

// A Part is one thing that is read. Read returns once ctx ends at the latest.
type Part struct {
	Name string
	Read func(ctx context.Context) Reading
}

// A Status is the latest reading of a part.
type Status struct {
	Name string
	Reading
	Since  time.Time // of the state and its cause
	ReadAt time.Time // when the source last answered; zero if never
}

// A Monitor reads parts.
type Monitor struct {
	parts []Part

	mu       sync.Mutex
	statuses []Status
	tried    []time.Time // when the latest reading ended, by part
}

// New returns a Monitor of parts.
func New(parts ...Part) *Monitor {
	m := &Monitor{parts: parts, statuses: make([]Status, len(parts)), tried: make([]time.Time, len(parts))}
	now := time.Now()
	for i, p := range parts {
		m.statuses[i] = Status{Name: p.Name, Reading: UnknownFor(NotRead), Since: now}
		m.tried[i] = now
	}
	return m
}

// Run reads all parts until ctx ends.
func (m *Monitor) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range m.parts {
		g.Go(func() error {
			for {
				m.read(ctx, i, p)
				if backoff.Sleep(ctx, readEvery) != nil {
					return nil
				}
			}
		})
	}
	return g.Wait()
}

func (m *Monitor) read(ctx context.Context, i int, p Part) {
	readCtx, cancel := context.WithTimeout(ctx, readTimeout)
	reading := p.Read(readCtx)
	cancel()
	if ctx.Err() != nil {
		return // the service ends
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.statuses[i], m.tried[i] = m.statuses[i].next(reading, time.Now()), time.Now()
}

// next is the status after another reading.
func (s Status) next(r Reading, now time.Time) Status {
	if r.State != s.State || r.Cause != s.Cause && !(r.Cause.isAway() && s.Cause.isAway()) {
		s.Since = now
	}
	if r.State == Unknown {
		r.Count = s.Count // as it was last read
	} else {
		s.ReadAt = now
	}
	s.Reading = r
	return s
}

// Statuses returns the latest reading of each part. A reading that hangs is none.
func (m *Monitor) Statuses() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	statuses := make([]Status, len(m.statuses))
	for i, s := range m.statuses {
		if time.Since(m.tried[i]) > staleAfter && s.Cause != NotRead {
			s = s.next(UnknownFor(Timeout), m.tried[i])
		}
		statuses[i] = s
	}
	return statuses
}
