// Package crowd keeps what operators read about people from telling anything
// about one of them.
//
// An operator may vote like anybody. An operator who votes on an anonymous report
// and finds a figure that then changes for one mail host, one push service or one
// replica has found the reporter there; votes on a public report of each suspect
// before show who it is. Rounding alone does not help: with mails to addresses of
// their own an attacker brings the figure to a boundary, and then sees whether one
// more crosses it.
//
// So a figure counts people and not deliveries, fewer than Size of them are not
// shown, and the boundaries between shown figures lie where nobody can know:
//
//   - A Rounding is for figures that are read from the database. Its boundaries
//     depend on a key, and differ for each figure and each period.
//   - A Gate is for counters and for log lines about events. It opens after a
//     random number of people.
//
// Either way one person more or less changes what one reading shows, or whether a
// gate opens at one event, with a probability of 1/Size at most, whatever else is
// known.
package crowd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Size is how many people operators see at least, or nobody: statistical offices
// publish no cell below five to ten people who cannot act on it, and here one of
// them may be the attacker, with several accounts.
const Size = 20

// A Rounding rounds figures about people. It is the same at all replicas, and a
// repeated question has the same answer, so that a mean over many answers reveals
// no more.
type Rounding struct{ key []byte }

// NewRounding returns the Rounding of a ring.
func NewRounding(ring *event.Keyring) *Rounding {
	return &Rounding{ring.Derive("cityconnect/crowds")[0]}
}

// Offset returns how far the boundaries of a figure are moved: 0 to Size-1. The
// name of the figure has its period, such as the hour.
func (r *Rounding) Offset(figure ...string) int {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(strings.Join(figure, "\x00")))
	return int(binary.BigEndian.Uint64(mac.Sum(nil)) % Size)
}

// Round returns how many of n people are shown: a multiple of Size, at most n and
// more than n-2*Size.
func (r *Rounding) Round(n int, figure ...string) int { return Shown(n, r.Offset(figure...)) }

// Shown returns how many of n people are shown with an offset.
func Shown(n, offset int) int { return max(0, n-offset) / Size * Size }

// A Gate withholds events until enough people have had one. It is safe for
// concurrent use.
type Gate struct {
	mu      sync.Mutex
	waiting map[string]*group
}

// A group has the people and events that wait behind a gate.
type group struct {
	people map[string]struct{} // fewer than enough
	enough int                 // Size to 2*Size-1, by chance
	events int
}

// Add adds an event of a kind that a person had, and returns how many events of
// that kind may be shown now: usually none, and otherwise a multiple of Size. The
// rest waits for the next time.
func (g *Gate) Add(kind, person string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = make(map[string]*group)
	}
	w := g.waiting[kind]
	if w == nil {
		w = &group{people: make(map[string]struct{}), enough: Size + rand.N(Size)}
		g.waiting[kind] = w
	}
	w.people[person] = struct{}{}
	w.events++
	if len(w.people) < w.enough {
		return 0
	}
	told := w.events / Size * Size
	w.events -= told
	w.enough = Size + rand.N(Size)
	clear(w.people)
	return told
}

// A Counter counts events that people had, behind a Gate.
type Counter struct {
	vec  *prometheus.CounterVec
	gate Gate
}

// NewCounter returns a Counter on vec.
func NewCounter(vec *prometheus.CounterVec) *Counter { return &Counter{vec: vec} }

// Counted registers a counter with one label, whose values begin at 0 to compare with, and
// returns the Counter on it.
func Counted(reg prometheus.Registerer, name, label string, values iter.Seq[string], help string) *Counter {
	vec := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for value := range values {
		vec.WithLabelValues(value)
	}
	return NewCounter(vec)
}

// Add counts an event that a person had.
func (c *Counter) Add(person string, labels ...string) {
	if told := c.gate.Add(strings.Join(labels, "\x00"), person); told > 0 {
		c.vec.WithLabelValues(labels...).Add(float64(told))
	}
}
