package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// categoryLife is how long categories are remembered. They change by hand,
// and rarely; one that is not known is looked up at once.
const categoryLife = time.Minute

// errNoCategory is the failure that a report is about no category that exists.
var errNoCategory = fault.NewInvalid("/category_id", "there is no such category")

// A categoryCache spares each creation a query.
type categoryCache struct {
	mu   sync.Mutex
	byID map[int32]report.Category
	read time.Time
}

// Categories returns every category by id.
func (s *Store) Categories(ctx context.Context) ([]report.Category, error) {
	byID, err := s.categoriesByID(ctx, categoryLife)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b report.Category) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// Category returns the category with the id, or a fault.Invalid error.
func (s *Store) Category(ctx context.Context, id int32) (report.Category, error) {
	for _, life := range []time.Duration{categoryLife, 0} {
		byID, err := s.categoriesByID(ctx, life)
		if err != nil {
			return report.Category{}, err
		}
		if c, ok := byID[id]; ok {
			return c, nil
		}
	}
	return report.Category{}, errNoCategory
}

// categoriesByID returns the categories as they were within life. The map is
// never changed.
func (s *Store) categoriesByID(ctx context.Context, life time.Duration) (map[int32]report.Category, error) {
	cache := &s.categories
	cache.mu.Lock()
	byID, fresh := cache.byID, time.Since(cache.read) < life
	cache.mu.Unlock()
	if fresh {
		return byID, nil
	}
	rows, err := s.pool.Query(ctx, `select id, name, description, coalesce(target_hours, 0) * interval '1 hour' from categories`)
	if err != nil {
		return nil, fmt.Errorf("select categories: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[report.Category])
	if err != nil {
		return nil, fmt.Errorf("select categories: %w", err)
	}
	byID = make(map[int32]report.Category, len(all))
	for _, c := range all {
		byID[c.ID] = c
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	cache.byID, cache.read = byID, time.Now()
	return byID, nil
}

// forget has the next one ask the database.
func (c *categoryCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}
