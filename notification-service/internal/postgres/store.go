// Package postgres keeps the notifications database: the numbered streams of
// notifications, what their readers have read, and, in the same statement as
// its notifications, that a message has had its effect.
package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A Store is the notifications database. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	// Who wants mail gets it, after so long; nil where there is no mail server.
	mailAfter *time.Duration
	notices   map[string]bool // whether officials and operators are mailed, by target
	push      bool            // whether notifications are pushed

	// Who was erased, and the keys of the recipients; nil until RefuseErased.
	erased *erasure.Eraser
	keys   *event.Keyring
}

// NewStore returns a Store on pool, which stays the caller's to close.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// WriteMail has Apply write deliveries for those who want mail, due after a time
// in which they may read it on the page. It is called before the store is used,
// where there is a mail server.
func (s *Store) WriteMail(after time.Duration) { s.mailAfter = &after }

// WritePush has Apply write deliveries for the devices of those who want to be
// told there. It is called before the store is used, where there is a key.
func (s *Store) WritePush() { s.push = true }

// WriteNotices has deliveries written for targets of notices, such as
// email.Officials. It is called before the store is used, for those that the city
// has named an address of.
func (s *Store) WriteNotices(targets ...string) {
	s.notices = make(map[string]bool, len(targets))
	for _, t := range targets {
		s.notices[t] = true
	}
}
