package relay

import (
	"context"
	"fmt"
	"time"

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

// republishedPerLine is how many messages are made pending for each line in the
// log.
const republishedPerLine = 10_000

// A brokerWatch detects that the broker lost its messages, for example with its
// disk, and makes the retained rows of the outbox pending again. Consumers drop
// messages that they had.
//
// It recognises a broker by an exchange that only the relay makes:
//
//	exchange   in known_brokers
//	is there   –                  no message is lost
//	missing    no                 a new broker: nothing was published to it
//	missing    yes                it lost its messages: make rows pending, then the exchange
//
// No replica publishes to a broker before it has the exchange: the republished
// rows keep their place, which is before all rows that were not published yet.
// The exchange is made last, so that if a replica dies before, another starts
// again. As a broker cannot lose its disk and keep its connections, one check
// per connection is enough.
type brokerWatch struct {
	pool        *pgxpool.Pool
	messages    *outbox.Store
	exchange    string
	leases      *shards.Leases
	republished prometheus.Counter
	log         zerolog.Logger
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

// check reports whether messages may be published, after republishing where
// necessary.
func (w *brokerWatch) check(ctx context.Context, conn *amqp.Connection) (ready bool, err error) {
	// In this order: another replica that finds a new broker makes the exchange
	// before it records the broker.
	var known bool
	err = w.pool.QueryRow(ctx, `select exists (select from known_brokers where exchange = $1)`, w.exchange).Scan(&known)
	if err != nil {
		return false, fmt.Errorf("read known brokers: %w", err)
	}
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	there, err := d.HasExchange(w.exchange, amqp.ExchangeFanout)
	if err != nil {
		return false, err
	}
	if known && !there {
		if !w.leases.Owns(leaderShard) { // the owner republishes
			return false, nil
		}
		if err := w.putBack(ctx); err != nil {
			return false, err
		}
	}
	if !there {
		if err := d.Exchange(w.exchange, amqp.ExchangeFanout); err != nil {
			w.log.Error().Err(err).Msg("declaring the marker exchange failed, a broker reset will go undetected")
			return true, nil
		}
	}
	if !known {
		_, err := w.pool.Exec(ctx, `insert into known_brokers (exchange) values ($1) on conflict do nothing`, w.exchange)
		if err != nil {
			return false, fmt.Errorf("record the broker: %w", err)
		}
	}
	return true, nil
}

// putBack makes all published rows pending again.
func (w *brokerWatch) putBack(ctx context.Context) error {
	w.log.Error().Msg("broker lost its messages, republishing retained rows")
	var done, total int64
	err := w.messages.PutBack(ctx, func(d, t int64) {
		w.republished.Add(float64(d - done))
		if d/republishedPerLine > done/republishedPerLine {
			w.log.Info().Int64("done", d).Int64("total", t).Msg("republishing continues")
		}
		done, total = d, t
	})
	if err != nil {
		return err
	}
	w.log.Info().Int64("done", done).Int64("total", total).Msg("retained rows are pending again")
	return nil
}
