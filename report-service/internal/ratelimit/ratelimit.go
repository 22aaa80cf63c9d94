// Package ratelimit bounds how often each user does something.
//
// Each replica counts for itself, in memory, since a counter that all share
// would cost every request a round trip: behind n replicas a user may get n
// times as far. What is kept is bounded, however many users there are.
package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxUsers bounds each generation of users, to some megabytes. Beyond it those
// who did nothing lately are forgotten early, and begin with all their turns.
const maxUsers = 50_000

// A Limit is so many turns, and as many again in each period. The zero Limit
// is none.
type Limit struct {
	Turns  int
	Period time.Duration
}

// UnmarshalText reads turns and period, such as "60/1h", or "off" for no limit.
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*l = Limit{}
		return nil
	}
	turns, period, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(turns)
	d, periodErr := time.ParseDuration(period)
	if err = errors.Join(err, periodErr); err != nil {
		return fmt.Errorf("read limit: %w", err)
	}
	if n < 1 || d <= 0 {
		return errors.New("read limit: want positive numbers")
	}
	*l = Limit{n, d}
	return nil
}

// A Limiter counts the turns of each user, as a token bucket: all turns may be
// taken at once, and come back evenly over the period.
type Limiter struct {
	limit Limit

	mu sync.Mutex
	// A user who did nothing for a period has all turns again, and need not be
	// known: after each period the previous generation is forgotten, from which
	// those who did something have moved to the current one.
	current, previous map[string]*bucket
	began             time.Time // the current generation
}

// A bucket has the turns that a user had at a time.
type bucket struct {
	turns float64
	at    time.Time
}

// New returns a limiter for which nobody has taken a turn yet.
func New(limit Limit) *Limiter {
	return &Limiter{limit: limit, current: make(map[string]*bucket), began: time.Now()}
}

// Take takes a turn of user. If there is none it takes none, and returns how
// long to wait for one.
func (l *Limiter) Take(user string) (wait time.Duration) {
	if l.limit.Turns == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketLocked(user)
	if b.turns < 1 {
		return time.Duration((1 - b.turns) * float64(l.interval()))
	}
	b.turns--
	return 0
}

// GiveBack undoes a Take whose turn came to nothing.
func (l *Limiter) GiveBack(user string) {
	if l.limit.Turns == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketLocked(user)
	b.turns = min(b.turns+1, float64(l.limit.Turns))
}

// interval is the time in which one turn comes back.
func (l *Limiter) interval() time.Duration { return l.limit.Period / time.Duration(l.limit.Turns) }

// bucketLocked returns user's bucket as it is now.
func (l *Limiter) bucketLocked(user string) *bucket {
	now := time.Now()
	if now.Sub(l.began) >= l.limit.Period || len(l.current) >= maxUsers {
		l.current, l.previous, l.began = make(map[string]*bucket), l.current, now
	}
	b, ok := l.current[user]
	if !ok {
		if b, ok = l.previous[user]; !ok {
			b = &bucket{float64(l.limit.Turns), now}
		}
		l.current[user] = b
	}
	b.turns = min(b.turns+float64(now.Sub(b.at))/float64(l.interval()), float64(l.limit.Turns))
	b.at = now
	return b
}
