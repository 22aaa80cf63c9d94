// Package postgres keeps the notifications database: the numbered streams of
// notifications, what their readers have read, and, in the same statement as
// its notifications, that a message has had its effect. It has a type for each
// subject; a DB joins them.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Options say what the database is used for. The zero Options are those of a city
// that sends neither mails nor pushes.
type Options struct {
	Mail    bool            // write deliveries for contacts: there is a mail server
	MailDue time.Duration   // after which a mail is due: the time to read the notification on the page
	Push    bool            // write deliveries for devices: there is a key
	Notices []string        // the targets of notices that have an address, such as email.Officials
	Erased  *erasure.Eraser // nothing is written for those whom it has erased; may be nil
	Keys    *event.Keyring  // of the recipients in dead letters; needed with Erased
}

// A DB is the notifications database by its subjects, each safe for concurrent use.
type DB struct {
	Streams    *Streams
	Effects    *Effects
	Follows    *Follows
	Contacts   *Contacts
	Callers    *Callers
	Digests    *Digests
	Mails      *Mails
	Devices    *Devices
	Endpoints  *Endpoints
	Deliveries *Deliveries
	Ledger     *Ledger
	Erased     *Erased
	Adoptions  *Adoptions
}

// New returns a DB on pool, which stays the caller's to close.
func New(pool *pgxpool.Pool, o Options) *DB {
	erased := &Erased{pool: pool, eraser: o.Erased, keys: o.Keys}
	streams := &Streams{pool: pool, erased: erased}
	return &DB{
		Streams:    streams,
		Effects:    &Effects{pool: pool, erased: erased, options: o},
		Follows:    &Follows{pool: pool, streams: streams},
		Contacts:   &Contacts{pool: pool, streams: streams},
		Callers:    &Callers{pool: pool, streams: streams},
		Digests:    &Digests{pool: pool, streams: streams},
		Mails:      &Mails{canceller: canceller{pool}, pool: pool},
		Devices:    &Devices{canceller: canceller{pool}, pool: pool, streams: streams},
		Endpoints:  &Endpoints{pool: pool, notices: o.Notices},
		Deliveries: &Deliveries{pool: pool},
		Ledger:     &Ledger{pool: pool},
		Erased:     erased,
		Adoptions:  &Adoptions{pool: pool, erased: erased},
	}
}

// A querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// collect returns all rows of a query, each read by scan. In errors, what says what the
// query is for.
func collect[T any](ctx context.Context, q querier, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	var all []T
	if err == nil {
		all, err = pgx.CollectRows(rows, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// A canceller cancels deliveries that its channel does not send.
type canceller struct{ pool *pgxpool.Pool }

// CancelDelivery cancels a waiting delivery, for the reason.
func (c canceller) CancelDelivery(ctx context.Context, channel string, delivery int64, reason string) error {
	_, err := c.pool.Exec(ctx, `
		update deliveries set state = 'cancelled', last_class = $3, done_at = now()
		where id = $1 and channel = $2 and state = 'waiting'`, delivery, channel, reason)
	if err != nil {
		return fmt.Errorf("cancel delivery: %w", err)
	}
	return nil
}
