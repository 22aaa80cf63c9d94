package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// appearanceLife is how long a process goes by the appearance as it read it, and
// appearanceWait how long it waits for another.
const (
	appearanceLife = 2 * time.Second
	appearanceWait = 500 * time.Millisecond
)

// Appearances keep how the city looks and writes.
type Appearances struct {
	pool *pgxpool.Pool

	mu   sync.Mutex
	kept appearance.Appearance
	at   time.Time
}

// Now returns the appearance, or the last known one while the database is away.
func (s *Appearances) Now(ctx context.Context) appearance.Appearance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < appearanceLife {
		return s.kept
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appearanceWait)
	defer cancel()
	if a, err := s.Read(ctx); err == nil {
		s.kept = a
	}
	s.at = time.Now()
	return s.kept
}

// Read reads the appearance.
func (s *Appearances) Read(ctx context.Context) (a appearance.Appearance, err error) {
	err = s.pool.QueryRow(ctx, `select revision, colour, words from appearance`).Scan(&a.Revision, &a.Colour, &a.Words)
	return a, pgpool.Found(err, "read appearance", nil) // without a row it was never changed
}

// Set changes the appearance if it is still at the revision of a, and records who did.
func (s *Appearances) Set(ctx context.Context, actor string, a appearance.Appearance) (appearance.Appearance, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into appearance (revision, colour, words) select 1, $2, $3 where $1 = 0
			on conflict (one) do nothing returning revision`, a.Revision, a.Colour, a.Words).Scan(&a.Revision)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `update appearance set revision = revision + 1, colour = $2, words = $3 where revision = $1 returning revision`,
				a.Revision, a.Colour, a.Words).Scan(&a.Revision)
		}
		if err := pgpool.Found(err, "write appearance", appearance.ErrStale); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Appearance}, map[string]any{"colour": a.Colour, "words": a.Words})
	})
	if err == nil {
		s.mu.Lock()
		s.at = time.Time{}
		s.mu.Unlock()
	}
	return a, err
}
