package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/forwarder"
)

// How a Replayer works.
const (
	replayPoll    = 500 * time.Millisecond
	replayLease   = 15 * time.Second // a dead replayer's work is taken over after it
	stepTimeout   = 10 * time.Second // of a page on its way, below the lease
	publishAtOnce = 64
)

// A ReplayMessage is a dead letter that is to be sent again.
type ReplayMessage struct {
	ID         int64
	Queue      string
	MessageID  string
	Type       string
	Body       []byte
	Properties Properties
	Headers    json.RawMessage
}

// A Replayer works at the replays that operators asked for, one at a time.
// Several replicas may run one; they share the replays by lease. A message that
// cannot be sent comes back to the archive.
//
// A message that was sent and not yet noted as sent, because the replayer
// died in between, is sent twice, under the same id: it has one effect.
type Replayer struct {
	store     *Store
	forwarder *forwarder.Forwarder
	owner     uuid.UUID
	log       zerolog.Logger
}

// NewReplayer returns a Replayer that sends by fwd.
func NewReplayer(store *Store, fwd *forwarder.Forwarder, log zerolog.Logger) *Replayer {
	return &Replayer{store: store, forwarder: fwd, owner: uuid.New(), log: log}
}

// Run works until ctx ends.
func (r *Replayer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		busy, err := r.step(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn().Str("error", failure.Describe(err)).Msg("replay failed, will retry")
		}
		if !busy || err != nil {
			_ = backoff.Sleep(ctx, replayPoll)
		}
	}
	return nil
}

// step claims a replay and does what it needs next. It reports whether there
// is likely more to do at once.
func (r *Replayer) step(ctx context.Context) (busy bool, err error) {
	replay, err := r.store.ClaimReplay(ctx, r.owner, replayLease)
	if err != nil || replay == nil {
		return false, err
	}
	if replay.Taking {
		return true, r.store.TakePortion(ctx, replay.ID)
	}
	if replay.Reopening {
		return true, r.store.ReopenPortion(ctx, replay.ID)
	}
	next := replay.next(time.Now())
	switch {
	case next.state != "":
		r.log.Info().Stringer("replay_id", replay.ID).Str("state", string(next.state)).Int("resolved", replay.Resolved).
			Int("failed", replay.Failed).Msg("replay ended")
		return true, r.store.EndReplay(ctx, replay.ID, next.state, next.reason)
	case next.send > 0:
		return true, r.send(ctx, replay, next.send)
	}
	// Nothing to do until sent messages succeed or come back: others may claim it.
	return false, r.store.ReleaseReplay(ctx, replay.ID, r.owner)
}

// send publishes up to n dead letters of the replay and notes which went.
func (r *Replayer) send(ctx context.Context, replay *Replay, n int) error {
	messages, err := r.store.PendingMessages(ctx, replay.ID, n)
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(rate.Inf, 0)
	if replay.PerSecond > 0 {
		limiter = rate.NewLimiter(rate.Limit(replay.PerSecond), 1)
	}
	sent, sendErr := r.publish(ctx, replay.ID, messages, limiter)
	if len(sent) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
		defer cancel()
		if err := r.store.MarkSent(ctx, replay.ID, sent); err != nil {
			return err
		}
	}
	return sendErr
}

func (r *Replayer) publish(ctx context.Context, replay uuid.UUID, messages []ReplayMessage, limiter *rate.Limiter) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	confirmed := make(chan int64, len(messages))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(publishAtOnce)
	for _, m := range messages {
		if err := limiter.Wait(ctx); err != nil {
			break // the rest of the page comes with the next step
		}
		g.Go(func() error {
			err := r.forwarder.Forward(ctx, "", m.Queue, m.publishing(replay))
			switch {
			case err == nil:
				confirmed <- m.ID
			case errors.Is(err, forwarder.ErrTooLarge): // now as at any other time
				err = r.store.Archive(ctx, []Letter{m.tooLarge(replay, time.Now())})
			}
			if err != nil {
				return fmt.Errorf("send dead letter %d: %w", m.ID, err)
			}
			return nil
		})
	}
	err := g.Wait()
	close(confirmed)
	var sent []int64
	for id := range confirmed {
		sent = append(sent, id)
	}
	return sent, err
}

// tooLarge returns m as it comes back from a replay that cannot send it.
func (m *ReplayMessage) tooLarge(replay uuid.UUID, at time.Time) Letter {
	const reason = "message is too large to be sent again"
	return Letter{
		Queue: m.Queue, MessageID: m.MessageID, Type: m.Type, Body: m.Body, Properties: m.Properties, Headers: m.Headers,
		Class: string(failure.Permanent), Error: reason, Group: reason, FirstFailedAt: at, FailedAt: at, Replay: &replay,
	}
}

// publishing returns m as it was before it failed, with the same id, so that it
// has one effect however often it is sent.
func (m *ReplayMessage) publishing(replay uuid.UUID) amqp.Publishing {
	headers := failure.Replay(DecodeHeaders(m.Headers))
	headers[failure.ReplayHeader] = replay.String()
	return m.Properties.Publishing(m.MessageID, m.Type, m.Body, headers)
}
