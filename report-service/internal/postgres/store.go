// Package postgres keeps reports, votes and their history, and the outbox
// rows that announce each change.
//
// It promises that a change and its announcement are one transaction: neither
// can exist without the other. A change takes the lock on the report's row
// before its outbox row is numbered, so that within a report the order of the
// outbox is the order of the commits.
package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A Store is the reports database.
type Store struct {
	pool        *pgxpool.Pool
	hashKeys    [][]byte // of idempotency keys, the one in use first
	photoKeys   [][]byte // of photos' bytes, likewise
	photoIDKeys [][]byte // of photos' ids, likewise
	abuseKeys   [][]byte // of who complains, likewise
	categories  categoryCache
	calendar    calendarCache
	committer   *committer
	ends        chan struct{} // holds a value while duplicates may have to follow their original
}

// NewStore returns the store behind pool. The keyring seals the recipient of
// each announcement, and hashes idempotency keys. After a commit that wrote some, committed is called with
// the parts of the outbox that have them; it must not block: it wakes the relay.
func NewStore(pool *pgxpool.Pool, keys *event.Keyring, committed func(shards.Set)) *Store {
	return &Store{
		pool:        pool,
		hashKeys:    keys.Derive("cityconnect/report-service/idempotency-keys"),
		photoKeys:   keys.Derive("cityconnect/report-service/photos"),
		photoIDKeys: keys.Derive("cityconnect/report-service/photo-ids"),
		abuseKeys:   keys.Derive(abusePurpose),
		committer:   newCommitter(pool, keys, committed),
		ends:        make(chan struct{}, 1),
	}
}

// Run writes the changes that Create, Move and Vote make, which wait for it. It
// returns once ctx has ended and those that it has taken are written, so it has
// to end after the requests that it serves.
func (s *Store) Run(ctx context.Context) error { return s.committer.Run(ctx) }
