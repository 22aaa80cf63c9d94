package main

import (
	"context"
	"sync"
	"time"
)

const (
	// sickFor is how long a failing message fails.
	sickFor = time.Second
	// longest is how long a pass may take. Its time is then the least that it
	// can have been.
	longest = 30 * time.Second
)

// A stopwatch takes the time of a pass.
type stopwatch struct {
	mu          sync.Mutex
	good        int
	left        int // good messages that are not done
	began, last time.Time
	stall       time.Duration
	cutOff      bool
	sickSince   map[string]time.Time
	finished    chan struct{}
}

func newStopwatch(l load) *stopwatch {
	return &stopwatch{good: l.good(), left: l.good(), sickSince: make(map[string]time.Time), finished: make(chan struct{})}
}

// begin starts the watch with the first message.
func (s *stopwatch) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
		s.last = s.began
	}
}

// sick tells whether the message fails now.
func (s *stopwatch) sick(id string) bool {
	if !fails(id) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.sickSince[id]
	if !known {
		since = time.Now()
		s.sickSince[id] = since
	}
	return time.Since(since) < sickFor
}

// done counts a good message, and tells whether it was the last.
func (s *stopwatch) done(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fails(id) || s.left == 0 {
		return s.left == 0
	}
	now := time.Now()
	s.stall = max(s.stall, now.Sub(s.last))
	s.last = now
	if s.left--; s.left == 0 {
		close(s.finished)
	}
	return s.left == 0
}

// wait returns when the good messages are done, or when the pass has taken
// too long.
func (s *stopwatch) wait(ctx context.Context) error {
	select {
	case <-s.finished:
		return nil
	case <-time.After(longest):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cutOff, s.last = true, time.Now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stopwatch) result() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return result{
		Messages: s.good - s.left, Seconds: s.last.Sub(s.began).Seconds(), StallMS: float64(s.stall.Microseconds()) / 1000, CutOff: s.cutOff,
	}
}
