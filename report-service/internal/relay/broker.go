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

// republishedPerLine is how many messages are put back for each line in the log.
const republishedPerLine = 10_000

// A brokerWatch notices that the broker has lost what it had, as one does that
// lost its disk, and has published again what the outbox still has. Consumers
// drop what they know.
//
// It recognises a broker by an exchange that only the relay makes:
//
//	exchange   in known_brokers
//	is there   –                  nothing is lost
//	missing    no                 a broker that is new to us: nothing was published to it
//	missing    yes                it has lost what it had: put it back, then make the exchange
//
// No replica publishes to a broker before it has the exchange: what is put back
// keeps its place, which is before all that was not published yet. The exchange
// is made last, so that another replica begins anew where one dies before. As a
// broker cannot lose its disk and keep its connections, it is enough to look
// once for each.
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
			w.log.Warn().Str("error", pgpool.LogText(err)).Msg("asking whether the broker has lost messages failed, nothing is published before it was answered, will retry")
		}
		_ = backoff.Sleep(ctx, pause.Next()) // the loop ends with ctx
	}
}

// check reports whether messages may be published, and has done by then what
// that takes.
func (w *brokerWatch) check(ctx context.Context, conn *amqp.Connection) (ready bool, err error) {
	// In this order: another replica that finds the broker new makes the exchange
	// before it notes the broker.
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
		if !w.leases.Owns(cleanerShard) { // the one that does puts it back
			return false, nil
		}
		if err := w.putBack(ctx); err != nil {
			return false, err
		}
	}
	if !there {
		if err := d.Exchange(w.exchange, amqp.ExchangeFanout); err != nil {
			w.log.Error().Err(err).Msg("making the exchange by which the broker is recognised failed, it will not be noticed if the broker loses its messages")
			return true, nil
		}
	}
	if !known {
		_, err := w.pool.Exec(ctx, `insert into known_brokers (exchange) values ($1) on conflict do nothing`, w.exchange)
		if err != nil {
			return false, fmt.Errorf("note the broker: %w", err)
		}
	}
	return true, nil
}

// putBack makes all pending again that was published.
func (w *brokerWatch) putBack(ctx context.Context) error {
	w.log.Error().Msg("the broker has lost what it had, what was published will be published again")
	var done, total int64
	err := w.messages.PutBack(ctx, func(d, t int64) {
		w.republished.Add(float64(d - done))
		if d/republishedPerLine > done/republishedPerLine {
			w.log.Info().Int64("done", d).Int64("total", t).Msg("putting messages back goes on")
		}
		done, total = d, t
	})
	if err != nil {
		return err
	}
	w.log.Info().Int64("done", done).Int64("total", total).Msg("all that was published waits to be published again")
	return nil
}
