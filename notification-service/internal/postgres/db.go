// Package postgres keeps the notifications database: the numbered streams of
// notifications, what their readers have read, and, in the same statement as
// its notifications, that a message has had its effect. It has a type for each
// subject; a DB joins them.
package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

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
	Appearance *Appearances
	Setup      *Setups
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
		Appearance: &Appearances{pool: pool},
		Setup:      &Setups{pool: pool},
	}
}

// column returns a value of each row, as a statement takes them for unnest.
func column[Row, Value any](rows []Row, value func(Row) Value) []Value {
	values := make([]Value, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

// idColumn is column for ids, which pgx then encodes without a detour by their text. The zero
// id is null.
func idColumn[Row any](rows []Row, id func(Row) uuid.UUID) pgtype.FlatArray[pgtype.UUID] {
	return column(rows, func(row Row) pgtype.UUID {
		of := id(row)
		return pgtype.UUID{Bytes: of, Valid: of != uuid.Nil}
	})
}
