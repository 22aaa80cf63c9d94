// Package settings keeps what a city sets for itself: its categories, areas and
// departments, when it works, the texts and views of its officials, whether there are
// guests; and who changed that.
package settings

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// cacheLife is how long settings are cached: a replica goes by a new one within this time.
const cacheLife = time.Second

// A database is the pool, or a transaction in which all settings are replaced.
type database interface {
	pgpool.Querier
	pgpool.Executer
	Begin(ctx context.Context) (pgx.Tx, error)
}

// A City is the settings of the reports database. What each report needs is cached.
type City struct {
	pool       database
	whole      bool // all settings are replaced at once, and may have ids of another city
	categories cached[categoryCache]
	calendar   cached[calendar.Calendar]
	areas      cached[*area.List]
	guests     cached[report.GuestSwitch]
}

// New returns the settings in the database behind pool.
func New(pool *pgxpool.Pool) *City { return &City{pool: pool} }

// ReplaceAll calls replace with the settings as one transaction sees them, in which nobody
// else replaces any. An error of replace undoes what it did.
func (c *City) ReplaceAll(ctx context.Context, replace func(*City) error) error {
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		for _, lock := range []string{
			`select from area_list for update`, `select from category_list for update`,
			`lock table departments, calendar, response_templates in share row exclusive mode`,
		} {
			if err := pgpool.Exec(ctx, tx, "lock settings", lock); err != nil {
				return err
			}
		}
		return replace(&City{pool: tx, whole: true})
	})
	c.areas.drop()
	c.categories.drop()
	c.calendar.drop()
	return err
}

// A cached value spares each request a query for what rarely changes.
type cached[T any] struct {
	mu     sync.Mutex
	value  T
	readAt time.Time
}

// get returns the value as it was within life, reading it if necessary. Callers
// share it and must not change it.
func (c *cached[T]) get(ctx context.Context, life time.Duration, read func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	value, fresh := c.value, time.Since(c.readAt) < life
	c.mu.Unlock()
	if fresh {
		return value, nil
	}
	value, err := read(ctx)
	if err == nil {
		c.mu.Lock()
		c.value, c.readAt = value, time.Now()
		c.mu.Unlock()
	}
	return value, err
}

// last returns the value that was read last, however old it is.
func (c *cached[T]) last() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

// drop empties the cache; the next get reads the value.
func (c *cached[T]) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readAt = time.Time{}
}
