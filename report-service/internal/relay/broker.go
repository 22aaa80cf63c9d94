package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// republishedPerLine is how many messages are made pending for each line in the
	// log.
	republishedPerLine = 10_000
	// Lost messages are republished in portions, each once the one before is out: new
	// rows wait for one of them at the most. Its size is what takes about
	// portionTime.
	minPortion, firstPortion, maxPortion = 20, 100, 1000
	portionTime                          = 500 * time.Millisecond
	portionPoll                          = 20 * time.Millisecond
	// portionGrace is how long a portion is waited for of which a part is out: the rest
	// waits for a queue that is missing, or for another attempt.
	portionGrace = 10 * time.Second
)

// A brokerWatch detects that the broker lost its messages, for example with its
// disk, and makes the retained rows of the outbox pending again. Consumers drop
// messages that they had.
//
// It recognises a broker by an exchange that only the relay makes:
//
//	exchange   in known_brokers
//	is there   –                  no message is lost
//	missing    no                 a new broker: nothing was published to it
//	missing    yes                it lost its messages: note until when, then make the exchange
//
// No replica publishes to a broker before it has the exchange: what is published
// after the noted time is not lost. The exchange is made after the note, so that if a
// replica dies in between, another notes a later time. As a broker cannot lose its disk
// and keep its connections, one check per connection is enough.
//
// The noted rows are republished beside new ones, the latest first: those are most
// likely to have been lost unconsumed. If the replica that does so dies, another goes
// on: republished rows have a later time.
type brokerWatch struct {
	pool        *pgxpool.Pool
	messages    *outbox.Store
	exchange    string
	leases      *shards.Leases
	republished prometheus.Counter
	log         zerolog.Logger
	lost        chan struct{} // holds a value when a loss was noted
}

// await returns once messages may be published to the broker behind conn, or
// ctx has ended.
func (w *brokerWatch) await(ctx context.Context, conn *amqp.Connection) {
	pause := backoff.Backoff{First: 100 * time.Millisecond, Max: electEvery}
	for ctx.Err() == nil {
		ready, err := w.check(ctx, conn)
		if ready {
			return
		}
		if err != nil && ctx.Err() == nil {
			w.log.Warn().Str("error", pgpool.LogText(err)).Msg("checking whether the broker lost messages failed, publishing is paused, will retry")
		}
		_ = backoff.Sleep(ctx, pause.Next()) // the loop ends with ctx
	}
}

// check reports whether messages may be published, after noting a loss.
func (w *brokerWatch) check(ctx context.Context, conn *amqp.Connection) (ready bool, err error) {
	// In this order: another replica that finds a new broker makes the exchange
	// before it records the broker.
	known, err := pgpool.Value[bool](ctx, w.pool, "read known brokers", `select exists (select from known_brokers where exchange = $1)`, w.exchange)
	if err != nil {
		return false, err
	}
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	there, err := d.HasExchange(w.exchange, amqp.ExchangeFanout)
	if err != nil {
		return false, err
	}
	if known && !there {
		if !w.leases.Owns(leaderShard) { // the owner notes it
			return false, nil
		}
		w.log.Error().Msg("broker lost its messages, republishing retained rows")
		err := pgpool.Exec(ctx, w.pool, "note that the broker lost its messages", `
			with again as (update outbox_manifests set sent_at = null)
			update known_brokers set republish_before = now(), lost_at = now() where exchange = $1`, w.exchange)
		if err != nil {
			return false, err
		}
		notify(w.lost)
	}
	if !there {
		if err := d.Exchange(w.exchange, amqp.ExchangeFanout); err != nil {
			w.log.Error().Err(err).Msg("declaring the marker exchange failed, a broker reset will go undetected")
			return true, nil
		}
	}
	if !known {
		err := pgpool.Exec(ctx, w.pool, "record the broker", `insert into known_brokers (exchange) values ($1) on conflict do nothing`, w.exchange)
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// run republishes what brokers have lost until ctx ends, while this replica is the one
// to do so.
func (w *brokerWatch) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if w.leases.Owns(leaderShard) {
			if err := w.republish(ctx); err != nil && ctx.Err() == nil {
				w.log.Warn().Str("error", pgpool.LogText(err)).Msg("republishing retained rows failed, will retry")
			}
		}
		timer := time.NewTimer(backoff.Jitter(electEvery))
		select {
		case <-w.lost:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// republish makes rows of before the noted loss pending again, portion by portion.
func (w *brokerWatch) republish(ctx context.Context) error {
	var done int64
	for size := firstPortion; ; {
		if !w.leases.Owns(leaderShard) {
			return nil
		}
		var before *time.Time
		err := w.pool.QueryRow(ctx, `select republish_before from known_brokers where exchange = $1`, w.exchange).Scan(&before)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && before == nil:
			return nil
		case err != nil:
			return fmt.Errorf("read known brokers: %w", err)
		}
		began := time.Now()
		ids, more, err := w.messages.RepublishLatest(ctx, *before, size)
		if err != nil {
			return err
		}
		if !more {
			// Another loss may have been noted since.
			err := pgpool.Exec(ctx, w.pool, "note that the retained rows were republished", `
				update known_brokers set republish_before = null where exchange = $1 and republish_before = $2`, w.exchange, *before)
			if err != nil {
				return err
			}
			w.log.Info().Int64("rows", done).Msg("retained rows are republished")
			continue
		}
		n := int64(len(ids))
		w.republished.Add(float64(n))
		if (done+n)/republishedPerLine > done/republishedPerLine {
			w.log.Info().Int64("rows", done+n).Msg("republishing continues")
		}
		done += n
		if err := w.awaitPortion(ctx, ids); err != nil {
			return err
		}
		if took := time.Since(began); took < portionTime {
			size = min(2*size, maxPortion)
		} else if took > 2*portionTime {
			size = max(size/2, minPortion)
		}
	}
}

// awaitPortion returns when a portion is published, or what is left of it must wait for
// something else.
func (w *brokerWatch) awaitPortion(ctx context.Context, ids []uuid.UUID) error {
	began := time.Now()
	for {
		pending, err := w.messages.Pending(ctx, ids)
		if err != nil {
			return err
		}
		if pending == 0 || pending < len(ids) && time.Since(began) > portionGrace {
			return nil
		}
		if err := backoff.Sleep(ctx, portionPoll); err != nil {
			return err
		}
	}
}
