package consumer

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/avast/retry-go/v4"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
)

// Quick tries: what clears by itself clears within this. More would hold up
// the messages behind, which a retry tier does not.
const (
	quickTries   = 3 // the first and two repeats
	quickDelay   = 25 * time.Millisecond
	quickCeiling = 100 * time.Millisecond
	pingTimeout  = 2 * time.Second
)

// reach runs f once the database is there, and again if it goes away
// meanwhile: that is not the message's failure. With probe, f should try one
// message only. The error is errStopped or one of f's own.
func (s *subscription) reach(work context.Context, f func(ctx context.Context, probe bool) error) error {
	for {
		probe, err := s.gate.enter(work)
		if err != nil {
			return errStopped
		}
		err = s.attempt(work, func(ctx context.Context) error { return f(ctx, probe) })
		away := err != nil && failure.Classify(err) == failure.Away
		if probe {
			s.gate.probed(!away)
		}
		if !away {
			return err
		}
		s.gate.shut()
	}
}

// attempt runs f with quick tries. Work in hand is finished even when the
// worker is told to stop, but never longer than the configured time.
func (s *subscription) attempt(work context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), s.tuning.ApplyTimeout)
	defer cancel()
	err := retry.Do(func() error { return guarded(ctx, f) },
		retry.Context(ctx), retry.Attempts(quickTries), retry.LastErrorOnly(true), retry.RetryIf(failure.Quick),
		retry.Delay(quickDelay), retry.MaxDelay(quickCeiling), retry.MaxJitter(quickDelay))
	if err != nil && failure.TimedOut(err) {
		return s.slowOrAway(work, err)
	}
	return err
}

// slowOrAway tells a database that is gone without a word from one that
// answers, only not to this statement.
func (s *subscription) slowOrAway(work context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	if s.store.Ping(ctx) == nil {
		return err
	}
	return &failure.Error{Class: failure.Away, Text: "the database does not answer", Err: err}
}

// guarded turns a panic of f into an error, which names the type of what was
// thrown and never its text: that may quote the message.
func guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = &failure.Error{Class: failure.Panicked, Text: fmt.Sprintf("panic of type %T at %s", thrown, origin())}
		}
	}()
	return f(ctx)
}

// origin returns the function that panicked.
func origin() string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(4, callers[:])])
	for {
		frame, more := frames.Next()
		if !isRuntime(frame.Function) || !more {
			return frame.Function
		}
	}
}

func isRuntime(function string) bool { return strings.HasPrefix(function, "runtime.") }
