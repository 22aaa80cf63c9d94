package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// categoryLife is how long categories are cached. They change by hand, and
// rarely; an id that is not in the cache is queried at once.
const categoryLife = time.Minute

// errNoCategory refuses a report whose category does not exist.
var errNoCategory = fault.NewInvalid("/category_id", "there is no such category")

// Categories returns every category by id.
func (s *Reports) Categories(ctx context.Context) ([]report.Category, error) {
	byID, err := s.db.categoriesByID(ctx, categoryLife)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b report.Category) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// Category returns the category with the id, or a fault.Invalid error.
func (s *Reports) Category(ctx context.Context, id int32) (report.Category, error) {
	for _, life := range []time.Duration{categoryLife, 0} {
		byID, err := s.db.categoriesByID(ctx, life)
		if err != nil {
			return report.Category{}, err
		}
		if c, ok := byID[id]; ok {
			return c, nil
		}
	}
	return report.Category{}, errNoCategory
}

// categoriesByID returns the categories as they were within life.
func (db *DB) categoriesByID(ctx context.Context, life time.Duration) (map[int32]report.Category, error) {
	return db.categories.get(ctx, life, func(ctx context.Context) (map[int32]report.Category, error) {
		all, err := collect(ctx, db.pool, "select categories", pgx.RowToStructByPos[report.Category],
			`select id, name, description, coalesce(target_hours, 0) * interval '1 hour' from categories`)
		if err != nil {
			return nil, err
		}
		byID := make(map[int32]report.Category, len(all))
		for _, c := range all {
			byID[c.ID] = c
		}
		return byID, nil
	})
}
