package rabbit

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// defaultRedial has a low ceiling: an attempt costs a broker that is away
// nothing, and each second of the pause is one in which messages wait although
// the broker is back.
var defaultRedial = backoff.Backoff{First: 500 * time.Millisecond, Max: 5 * time.Second}

// stableAfter is how long a session must last for the next pause to be the
// shortest again. One that fails at once, by a refused declaration say, must
// not hammer the broker.
const stableAfter = 10 * time.Second

var errURL = errors.New("malformed rabbitmq url")

// errClosed is the cause of a session whose connection ended without a reason.
var errClosed = errors.New("connection closed")

// Supervise dials, hands each live connection to session, and dials again when
// session returned, until ctx ends: after 0.5 s, doubling to 5 s, ±20 %,
// without limit, and at once when another connection of this process has
// reached the same broker. Of a cluster it tries every node before it pauses.
// The context of session ends when the connection closes or ctx does; Supervise
// waits for session to return, and closes the connection.
//
//	dialling ──reached──► session ──ended──► pause ──► dialling
//	    └──failed──► pause, which ends early when another connection succeeds
//
// It returns nil once ctx ended, or an error at once if the URL is malformed.
func Supervise(ctx context.Context, cfg Config, session func(ctx context.Context, conn *amqp.Connection) error) error {
	if _, err := Nodes(cfg.URL); err != nil {
		return err
	}
	observe := cfg.observer()
	redial := cfg.redial
	if redial.First == 0 {
		redial = defaultRedial
	}
	for ctx.Err() == nil {
		reached := reachedBy(cfg.URL) // before dialling, so that a success during it counts
		began := time.Now()
		conn, err := Dial(ctx, cfg)
		if err == nil {
			reached = nil // the broker is there, it is the session that fails
			announceReached(cfg.URL)
			err = serve(ctx, cfg, observe, conn, session)
		}
		observe(State{Cause: err})
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > stableAfter {
			redial.Reset()
		}
		pause := redial.Next()
		cfg.Log.Warn().Err(err).Dur("retry_in", pause).Str("connection", cfg.Name).Msg("rabbitmq connection failed or ended, will dial again")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-reached:
		}
	}
	return nil
}

// serve runs session on conn until it returns, and closes conn.
func serve(ctx context.Context, cfg Config, observe func(State), conn *amqp.Connection, session func(context.Context, *amqp.Connection) error) error {
	defer closeWithin(conn, closeTimeout)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	cfg.Log.Info().Str("connection", cfg.Name).Msg("rabbitmq connected")
	observe(State{Connected: true})

	sessionCtx, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for sessionCtx.Err() == nil {
			select {
			case reason := <-closed:
				if reason == nil {
					end(errClosed)
				} else {
					end(reason)
				}
			case b, ok := <-blocked:
				switch {
				case !ok:
					blocked = nil // the close follows
				case b.Active:
					cfg.Log.Warn().Str("connection", cfg.Name).Str("reason", b.Reason).Msg("rabbitmq blocks publishers, messages wait")
					observe(State{Connected: true, Blocked: cmp.Or(b.Reason, "an alarm")})
				default:
					cfg.Log.Info().Str("connection", cfg.Name).Msg("rabbitmq unblocked publishers")
					observe(State{Connected: true})
				}
			case <-sessionCtx.Done():
			}
		}
	})
	err := session(sessionCtx, conn)
	if cause := context.Cause(sessionCtx); cause != nil && ctx.Err() == nil {
		err = errors.Join(cause, err)
	}
	end(nil)
	watching.Wait()
	return err
}

// reached has a channel for each broker that connections of this process wait
// for. It is closed when one of them gets through.
var reached = struct {
	sync.Mutex
	brokers map[string]chan struct{}
}{brokers: make(map[string]chan struct{})}

// reachedBy returns a channel that is closed when a connection of this process
// reaches the broker at url.
func reachedBy(url string) <-chan struct{} {
	reached.Lock()
	defer reached.Unlock()
	ch, ok := reached.brokers[url]
	if !ok {
		ch = make(chan struct{})
		reached.brokers[url] = ch
	}
	return ch
}

// announceReached wakes the connections that wait for the broker at url.
func announceReached(url string) {
	reached.Lock()
	defer reached.Unlock()
	if ch, ok := reached.brokers[url]; ok {
		close(ch)
		delete(reached.brokers, url)
	}
}
