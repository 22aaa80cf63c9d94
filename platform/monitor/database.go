package monitor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The causes of a database that answers and does not do all its work.
const (
	ReadOnly Cause = "read_only" // it takes no changes
	Slow     Cause = "slow"      // a change waits for longer than a reading may take
)

// writesEvery is how often it is tried whether the database takes changes: each try
// uses up the number of a transaction. With the next reading and the console's own pause
// a refusal is seen within ten seconds.
const writesEvery = 4 * time.Second

// Sparingly returns probe, whose success is the answer for as long as every. One that
// fails is tried again each time.
func Sparingly(every time.Duration, probe func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	var succeededAt time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(succeededAt) < every {
			return nil
		}
		err := probe(ctx)
		if err == nil {
			succeededAt = time.Now()
		}
		return err
	}
}

// A Database reads whether a database does its work.
type Database struct {
	pool     *pgxpool.Pool
	writable func(context.Context) error
	away     atomic.Bool
}

// NewDatabase returns a Database that is read through pool; writable returns an error
// if it takes no changes.
func NewDatabase(pool *pgxpool.Pool, writable func(context.Context) error) *Database {
	return &Database{pool: pool, writable: Sparingly(writesEvery, writable)}
}

// Away reports whether the database did not answer at the latest reading.
func (d *Database) Away() bool { return d.away.Load() }

// Read is for a Part.
func (d *Database) Read(ctx context.Context) Reading {
	if err := d.pool.Ping(ctx); err != nil {
		d.away.Store(true)
		return Reading{State: Bad, Cause: awayCause(err)}
	}
	d.away.Store(false)
	err := d.writable(ctx)
	switch {
	case err == nil:
		return Reading{State: Good}
	case errors.Is(err, context.DeadlineExceeded):
		return Reading{State: Warning, Cause: Slow}
	default:
		return Reading{State: Bad, Cause: ReadOnly}
	}
}
