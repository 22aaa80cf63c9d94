// Package ratelimit bounds how often each user does something.
//
// Each replica counts for itself, in memory, since a shared counter would cost
// every request a round trip: with n replicas a user may get n times the limit.
// Memory is bounded, however many users there are.
package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxUsers bounds each generation of users, to some megabytes. Beyond it the
// least recent users are dropped early, and get all their turns back.
const maxUsers = 50_000

// A Limit is a number of turns that comes back in each period. The zero Limit
// does not limit.
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
		return errors.New("read limit: must be positive numbers")
	}
	*l = Limit{n, d}
	return nil
}

// A Limiter counts the turns of each user, as a token bucket: all turns may be
// taken at once, and come back evenly over the period.
type Limiter struct {
	limit Limit

	mu sync.Mutex
	// A user who was idle for a period has all turns again, and need not be
	// stored: after each period the previous generation is dropped. Active
	// users have moved from it to the current one.
	current, previous map[string]*bucket
	first, began      time.Time // when the limiter and the current generation began
}

// A bucket is the number of turns that a user had at a time.
type bucket struct {
	turns float64
	at    time.Duration // since the limiter began
}

// New returns a limiter of which no turn is taken.
func New(limit Limit) *Limiter {
	now := time.Now()
	return &Limiter{limit: limit, current: make(map[string]*bucket), first: now, began: now}
}

// Take takes a turn of user. Without one, it returns how long to wait for the
// next.
func (l *Limiter) Take(user string) (wait time.Duration) { return l.TakeSome(user, 1) }

// TakeSome takes so many turns of user at once, or none if there are not as many: then
// it returns how long to wait for them.
func (l *Limiter) TakeSome(user string, turns float64) (wait time.Duration) {
	l.withBucket(user, func(b *bucket) {
		if b.turns < turns {
			wait = time.Duration((turns - b.turns) * float64(l.interval()))
		} else {
			b.turns -= turns
		}
	})
	return wait
}

// GiveBack returns an unused turn.
func (l *Limiter) GiveBack(user string) {
	l.withBucket(user, func(b *bucket) { b.turns = min(b.turns+1, float64(l.limit.Turns)) })
}

// Charge takes turns of user that were used already, even if there are not as many:
// then user owes them, up to as many as the limit has.
func (l *Limiter) Charge(user string, turns float64) {
	l.withBucket(user, func(b *bucket) { b.turns = max(b.turns-turns, -float64(l.limit.Turns)) })
}

// Debt returns how long user, who owes turns, has to wait for the next one; zero for
// who owes none.
func (l *Limiter) Debt(user string) (wait time.Duration) {
	l.withBucket(user, func(b *bucket) {
		if b.turns < 0 {
			wait = time.Duration((1 - b.turns) * float64(l.interval()))
		}
	})
	return wait
}

// interval is the time in which one turn comes back.
func (l *Limiter) interval() time.Duration { return l.limit.Period / time.Duration(l.limit.Turns) }

// withBucket calls do with user's bucket as it is now, if there is a limit.
func (l *Limiter) withBucket(user string, do func(*bucket)) {
	if l.limit.Turns == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.began) >= l.limit.Period || len(l.current) >= maxUsers {
		l.current, l.previous, l.began = make(map[string]*bucket), l.current, now
	}
	age := now.Sub(l.first)
	b, ok := l.current[user]
	if !ok {
		if b, ok = l.previous[user]; !ok {
			b = &bucket{float64(l.limit.Turns), age}
		}
		l.current[user] = b
	}
	b.turns = min(b.turns+float64(age-b.at)/float64(l.interval()), float64(l.limit.Turns))
	b.at = age
	do(b)
}
