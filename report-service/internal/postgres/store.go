// Package postgres keeps reports, votes and their history, and the outbox
// rows that announce each change.
//
// It promises that a change and its announcement are one transaction: neither
// can exist without the other. A change takes the lock on the report's row
// before its outbox row is numbered, so that within a report the order of the
// outbox is the order of the commits.
package postgres

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A Store is the reports database.
type Store struct {
	pool       *pgxpool.Pool
	keys       *event.Keyring
	committed  func(shards.Set)
	categories categoryCache
	group      *group
}

// NewStore returns the store behind pool. The keyring seals the recipient of
// each announcement. After a commit that wrote some, committed is told in which
// parts of the outbox; it must not block: it wakes the relay.
func NewStore(pool *pgxpool.Pool, keys *event.Keyring, committed func(shards.Set)) *Store {
	s := &Store{pool: pool, keys: keys, committed: committed}
	s.group = newGroup(s.write)
	return s
}
