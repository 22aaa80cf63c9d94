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

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
	"github.com/cityconnect/cityconnect/notification-service/internal/forwarder"
)

// How a Replayer works.
const (
	replayPoll    = 500 * time.Millisecond
	replayLease   = 15 * time.Second // a dead replayer's work is taken over after it
	stepTimeout   = 10 * time.Second // of a page on its way, below the lease
	publishAtOnce = 64
)

// A Parcel is a dead letter that is to be sent again.
type Parcel struct {
	ID         int64
	Queue      string
	MessageID  string
	Type       string
	Body       []byte
	Properties Properties
	Headers    json.RawMessage
}

// A ReplayStore keeps the state of replays: all of it.
type ReplayStore interface {
	// What cannot be sent comes back to the archive.
	ArchiveStore
	// ClaimReplay leases to owner a running replay that nobody else works
	// at, or returns nil.
	ClaimReplay(ctx context.Context, owner uuid.UUID, lease time.Duration) (*Replay, error)
	// ReleaseReplay ends owner's lease.
	ReleaseReplay(ctx context.Context, id, owner uuid.UUID) error
	// PendingParcels returns up to limit dead letters that are to be sent.
	PendingParcels(ctx context.Context, id uuid.UUID, limit int) ([]Parcel, error)
	// MarkSent notes that they are.
	MarkSent(ctx context.Context, id uuid.UUID, letters []int64) error
	// EndReplay puts a running replay into an end state. What was not sent
	// is open again.
	EndReplay(ctx context.Context, id uuid.UUID, state ReplayState, reason string) error
}

// A Forwarder publishes under confirm.
type Forwarder interface {
	Forward(ctx context.Context, exchange, key string, msg amqp.Publishing) error
}

// A Replayer works at the replays that operators ordered, one at a time.
// Several replicas may run one; they share the replays by lease.
//
// A message that was sent and not yet noted as sent, because the replayer
// died in between, is sent twice, under the same id: it has one effect.
type Replayer struct {
	store     ReplayStore
	forwarder Forwarder
	owner     uuid.UUID
	log       zerolog.Logger
}

// NewReplayer returns a Replayer that sends by forwarder.
func NewReplayer(store ReplayStore, forwarder Forwarder, log zerolog.Logger) *Replayer {
	return &Replayer{store: store, forwarder: forwarder, owner: uuid.New(), log: log}
}

// Run works until ctx ends.
func (r *Replayer) Run(ctx context.Context) error {
	for {
		busy, err := r.step(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn().Str("reason", failure.Describe(err)).Msg("replay does not get on")
		}
		if busy && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(replayPoll):
		}
	}
}

// step claims a replay and does what it needs next. It tells whether there
// is likely more to do at once.
func (r *Replayer) step(ctx context.Context) (busy bool, err error) {
	replay, err := r.store.ClaimReplay(ctx, r.owner, replayLease)
	if err != nil || replay == nil {
		return false, err
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
	// Nothing to do until what was sent is heard of: others may look too.
	return false, r.store.ReleaseReplay(ctx, replay.ID, r.owner)
}

// send publishes up to n dead letters of the replay and notes which went.
func (r *Replayer) send(ctx context.Context, replay *Replay, n int) error {
	parcels, err := r.store.PendingParcels(ctx, replay.ID, n)
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(rate.Inf, 0)
	if replay.PerSecond > 0 {
		limiter = rate.NewLimiter(rate.Limit(replay.PerSecond), 1)
	}
	sent, sendErr := r.publish(ctx, replay.ID, parcels, limiter)
	if len(sent) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
		defer cancel()
		if err := r.store.MarkSent(ctx, replay.ID, sent); err != nil {
			return err
		}
	}
	return sendErr
}

func (r *Replayer) publish(ctx context.Context, replay uuid.UUID, parcels []Parcel, limiter *rate.Limiter) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	confirmed := make(chan int64, len(parcels))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(publishAtOnce)
	for _, p := range parcels {
		if err := limiter.Wait(ctx); err != nil {
			break // the rest of the page comes with the next step
		}
		g.Go(func() error {
			err := r.deliver(ctx, p.Queue, p.message(replay))
			switch {
			case err == nil:
				confirmed <- p.ID
			case errors.Is(err, forwarder.ErrTooLarge): // now as at any other time
				err = r.store.Archive(ctx, []Letter{p.tooLarge(replay, time.Now())})
			}
			if err != nil {
				return fmt.Errorf("send dead letter %d: %w", p.ID, err)
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

// deliver sends msg, without the headers that nobody needs if they are too
// large.
func (r *Replayer) deliver(ctx context.Context, queue string, msg amqp.Publishing) error {
	err := r.forwarder.Forward(ctx, "", queue, msg)
	if errors.Is(err, forwarder.ErrTooLarge) {
		msg.Headers = failure.Essential(msg.Headers)
		err = r.forwarder.Forward(ctx, "", queue, msg)
	}
	return err
}

// tooLarge returns p as it comes back from a replay that cannot send it.
func (p *Parcel) tooLarge(replay uuid.UUID, at time.Time) Letter {
	const reason = "message is too large to be sent again"
	return Letter{
		Queue: p.Queue, MessageID: p.MessageID, Type: p.Type, Body: p.Body, Properties: p.Properties, Headers: p.Headers,
		Class: string(failure.Permanent), Error: reason, Group: reason, FirstFailedAt: at, FailedAt: at, Replay: &replay,
	}
}

// message returns p as it was before it failed, with the same id, so that it
// has one effect however often it is sent.
func (p *Parcel) message(replay uuid.UUID) amqp.Publishing {
	headers := failure.Replay(decodeHeaders(p.Headers))
	headers[failure.ReplayHeader] = replay.String()
	return amqp.Publishing{
		MessageId: p.MessageID, Type: p.Type, Body: p.Body, Headers: headers, DeliveryMode: amqp.Persistent,
		ContentType: p.Properties.ContentType, AppId: p.Properties.AppID, Timestamp: p.Properties.Timestamp,
	}
}
