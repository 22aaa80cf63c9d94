package rabbit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
	// stableAfter is how long a session must last for the next failure to start
	// again at minRedial. One that fails at once, by a refused declaration say,
	// must not hammer the broker.
	stableAfter = 10 * time.Second
)

var errURL = errors.New("malformed rabbitmq url")

// errClosed is the cause of a session whose connection ended without a word.
var errClosed = errors.New("connection closed")

// Supervise dials, hands each live connection to session, and dials again when
// session returned, until ctx ends: after 0.5 s, doubling to 30 s, ±20 %,
// without limit. The context of session ends when the connection closes or ctx
// does; Supervise waits for session to return, and closes the connection.
//
// It returns nil once ctx ended, or an error at once if the URL is malformed.
func Supervise(ctx context.Context, cfg Config, session func(ctx context.Context, conn *amqp.Connection) error) error {
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := once(ctx, cfg, session)
		if errors.Is(err, errURL) {
			return err
		}
		if cfg.Observer.Disconnected != nil {
			cfg.Observer.Disconnected(err)
		}
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > stableAfter {
			failures = 0
		}
		delay := redialDelay(failures)
		cfg.Log.Warn().Err(err).Dur("retry_in", delay).Str("connection", cfg.Name).Msg("rabbitmq connection ended")
		pause(ctx, delay)
	}
	return nil
}

// once lives through one connection.
func once(ctx context.Context, cfg Config, session func(context.Context, *amqp.Connection) error) error {
	conn, err := Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))

	cfg.Log.Info().Str("connection", cfg.Name).Msg("rabbitmq connected")
	call(cfg.Observer.Connected)
	sessionCtx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch(sessionCtx, cfg, closed, blocked, end)
	}()

	err = session(sessionCtx, conn)
	if cause := context.Cause(sessionCtx); cause != nil && ctx.Err() == nil {
		err = errors.Join(cause, err)
	}
	end(nil)
	<-watched
	return err
}

// watch ends the session when the connection closes, and passes on what the
// broker says about blocking.
func watch(ctx context.Context, cfg Config, closed <-chan *amqp.Error, blocked <-chan amqp.Blocking, end context.CancelCauseFunc) {
	for {
		select {
		case reason, ok := <-closed:
			if !ok || reason == nil {
				end(errClosed)
				return
			}
			end(reason)
			return
		case b, ok := <-blocked:
			if !ok {
				blocked = nil // the close follows
				continue
			}
			observeBlocked(cfg, b)
		case <-ctx.Done():
			return
		}
	}
}

func observeBlocked(cfg Config, b amqp.Blocking) {
	if b.Active {
		cfg.Log.Warn().Str("connection", cfg.Name).Str("reason", b.Reason).Msg("rabbitmq blocks publishers")
		if cfg.Observer.Blocked != nil {
			cfg.Observer.Blocked(b.Reason)
		}
		return
	}
	cfg.Log.Info().Str("connection", cfg.Name).Msg("rabbitmq unblocked publishers")
	call(cfg.Observer.Unblocked)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// redialDelay doubles with each failure in a row, within ±20 %, so that the
// replicas of a service do not come back in step.
func redialDelay(failures int) time.Duration {
	delay := maxRedial
	if failures < 6 { // 0.5 s << 6 is above the maximum
		delay = min(minRedial<<failures, maxRedial)
	}
	return time.Duration(float64(delay) * (0.8 + 0.4*rand.Float64()))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
