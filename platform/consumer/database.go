package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/avast/retry-go/v4"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Immediate retries: what clears by itself clears within this. More would hold
// up the messages behind, which a retry queue does not.
const (
	immediateTries = 3 // the first and two more
	immediateDelay = 25 * time.Millisecond
	immediateMax   = 100 * time.Millisecond
	pingTimeout    = 2 * time.Second
)

// withDatabase runs fn once the breaker allows it. If the database turns out
// to be away, fn runs again later: an outage is not the message's failure. With
// probe, fn should try one message only. The error is errStopped or fn's own.
//
// Work in hand is finished even when the worker is stopped, but never takes
// longer than the configured time.
func (h *handler) withDatabase(work context.Context, fn func(ctx context.Context, probe bool) error) error {
	for {
		probe, err := h.breaker.enter(work)
		if err != nil {
			return errStopped
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(work), h.timeout)
		liveness := h.checkLiveness(ctx)
		err = retry.Do(func() error { return recoverPanic(func() error { return fn(ctx, probe) }) },
			retry.Context(ctx), retry.Attempts(immediateTries), retry.LastErrorOnly(true), retry.RetryIf(pgpool.Transient),
			retry.Delay(immediateDelay), retry.MaxDelay(immediateMax), retry.MaxJitter(immediateDelay))
		cancel()
		steady := liveness.end()

		away := false
		if err != nil {
			class := failure.Classify(err)
			away = class == failure.Away
			// A class that the effect has decided is final: the database had no part in it.
			if _, decided := errors.AsType[*failure.Error](err); !decided {
				away = away || class == failure.Transient && !steady
				if _, refused := errors.AsType[*pgconn.PgError](err); class == failure.Transient || refused {
					away = h.cannotWrite(work) && class != failure.Permanent || away
				}
			}
		}
		h.breaker.record(probe, away)
		if !away {
			return err
		}
	}
}

// cannotWrite reports whether the database refuses every change: then a failure
// says nothing about its message. It may repair that.
func (h *handler) cannotWrite(work context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	return h.store.writable(ctx) != nil
}

// A liveness pings the database beside a transaction that takes long, to find
// out whether it answers all the time: never later than after a quarter of
// what the transaction may take.
//
// A transaction that fails otherwise says nothing about its message: the
// database may have been away and come back, or the machine may be slow. Only
// what fails beside answered pings costs an attempt, so that an outage costs
// none, however slow everything is.
type liveness struct {
	ping         func(context.Context) error
	every, limit time.Duration
	timer        *time.Timer
	pinging      sync.WaitGroup

	mu       sync.Mutex
	answered time.Time // the last time
	steady   bool
}

// checkLiveness begins to ping beside a transaction under ctx. It costs nothing
// but a timer as long as the transaction is fast.
func (h *handler) checkLiveness(ctx context.Context) *liveness {
	l := &liveness{ping: h.store.ping, every: h.timeout / 10, limit: h.timeout / 4, answered: time.Now(), steady: true}
	l.pinging.Add(1)
	l.timer = time.AfterFunc(l.every, func() {
		defer l.pinging.Done()
		for ctx.Err() == nil {
			if l.ping(ctx) == nil {
				l.note()
			}
			_ = backoff.Sleep(ctx, l.every)
		}
	})
	return l
}

// end reports whether the database has answered all the time. The context of
// the transaction has ended.
func (l *liveness) end() bool {
	if !l.timer.Stop() {
		l.pinging.Wait()
	}
	l.note()
	return l.steady
}

func (l *liveness) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steady = l.steady && time.Since(l.answered) <= l.limit
	l.answered = time.Now()
}

// recoverPanic turns a panic of fn into an error, which names the type of the
// panic's value and never its text: that may quote the message.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &failure.Error{Class: failure.Panicked, Text: fmt.Sprintf("panic of type %T at %s", value, origin())}
		}
	}()
	return fn()
}

// origin returns the function that panicked.
func origin() string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(4, callers[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return frame.Function
		}
	}
}
