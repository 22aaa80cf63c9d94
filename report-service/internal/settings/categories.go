package settings

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// ErrNoCategory refuses a report whose category does not exist.
var ErrNoCategory = fault.NewInvalid("/category_id", "there is no such category")

// Categories are the city's categories.
type Categories struct{ city *City }

// NewCategories returns the categories of a city.
func NewCategories(city *City) *Categories { return &Categories{city} }

// List returns the categories, at most a second old.
func (s *Categories) List(ctx context.Context) (report.CategoryList, error) {
	cache, err := s.city.readCategories(ctx, cacheLife)
	return cache.list, err
}

// ByID returns the categories by their ids as they are now.
func (s *Categories) ByID(ctx context.Context) (map[int32]report.Category, error) {
	cache, err := s.city.readCategories(ctx, 0)
	return cache.byID, err
}

// Category returns the category with the id, or a fault.Invalid error. An id that is not
// in the cache is queried at once.
func (s *Categories) Category(ctx context.Context, id int32) (report.Category, error) {
	for _, life := range []time.Duration{cacheLife, 0} {
		cache, err := s.city.readCategories(ctx, life)
		if err != nil {
			return report.Category{}, err
		}
		if c, ok := cache.byID[id]; ok {
			return c, nil
		}
	}
	return report.Category{}, ErrNoCategory
}

// Replace makes categories the city's list, in their order, if the stored one is at a
// revision in at. Categories without an id are new, those that are left out are
// retired. Their Name is stored as the one that messages carry.
func (s *Categories) Replace(ctx context.Context, categories []report.Category, at report.Versions, by report.Official) (report.CategoryList, error) {
	var stored categoryCache
	err := pgx.BeginFunc(ctx, s.city.pool, func(tx pgx.Tx) error {
		revision, err := pgpool.Value[int64](ctx, tx, "lock categories", `select revision from category_list for update`)
		if err != nil {
			return err
		}
		if !at.Has(revision) {
			return at.StaleList(revision)
		}
		before, err := selectCategories(ctx, tx)
		if err != nil {
			return err
		}
		change, err := replaceCategories(ctx, tx, before, categories, s.city.whole)
		if err != nil {
			return err
		}
		if change == (report.CategoryChange{}) {
			stored = before
			return nil
		}
		err = pgpool.Exec(ctx, tx, "write audit", `
			with counted as (update category_list set revision = revision + 1)
			insert into category_audit (actor, actor_name, added, changed, retired, moved) values ($1, $2, $3, $4, $5, $6)`,
			by.ID, by.Name, change.Added, change.Changed, change.Retired, change.Moved)
		if err != nil {
			return err
		}
		stored, err = selectCategories(ctx, tx)
		return err
	})
	s.city.categories.drop()
	return stored.list, err
}

// replaceCategories writes the rows of categories, and returns what differs from before.
// With whole, they may have ids of another city, and be retired there.
func replaceCategories(ctx context.Context, tx pgx.Tx, before categoryCache, categories []report.Category, whole bool) (change report.CategoryChange, err error) {
	last := int32(0)
	for id := range before.byID {
		last = max(last, id)
	}
	for _, c := range categories {
		last = max(last, c.ID)
	}
	var rows pgx.Batch
	var kept []int32
	for i, c := range categories {
		old, known := before.byID[c.ID]
		switch {
		case c.ID == 0:
			last++
			c.ID = last
			change.Added++
		case !known && whole:
			change.Added++
		case !known:
			return change, fault.NewInvalid(fmt.Sprintf("/categories/%d/id", i), "there is no such category; leave the id out for a new one")
		case !c.Same(old):
			change.Changed++
		}
		if !c.Retired {
			kept = append(kept, c.ID)
		}
		rows.Queue(`
			insert into categories (id, name, position, icon, accepts_reports, retired_at) values ($1, $2, $3, $4, $5, case when $6 then now() end)
			on conflict (id) do update set name = excluded.name, position = excluded.position, icon = excluded.icon,
				accepts_reports = excluded.accepts_reports, retired_at = case when $6 then coalesce(categories.retired_at, now()) end`,
			c.ID, c.Name, i+1, c.Icon, c.Accepts, c.Retired)
		rows.Queue(`delete from category_texts where category_id = $1`, c.ID)
		rows.Queue(`delete from category_signposts where category_id = $1`, c.ID)
		for _, s := range c.Signposts {
			rows.Queue(`insert into category_signposts (category_id, area_id, texts) values ($1, $2, $3)`, c.ID, s.Area, s.Texts)
		}
		for language, t := range c.Texts {
			rows.Queue(`insert into category_texts (category_id, language, name, hint, group_name) values ($1, $2, $3, $4, $5)`,
				c.ID, language, t.Name, t.Hint, t.Group)
		}
	}
	var places []int32 // of those that were in use, and still are
	for _, c := range before.list.Categories {
		switch stays := slices.Contains(kept, c.ID); {
		case stays && !c.Retired:
			places = append(places, c.ID)
		case !c.Retired:
			change.Retired++
		}
	}
	change.Moved = !slices.IsSorted(placesIn(kept, places))
	rows.Queue(`update categories set retired_at = now() where id <> all($1) and retired_at is null`, kept)
	if err := tx.SendBatch(ctx, &rows).Close(); err != nil {
		return change, fmt.Errorf("replace categories: %w", err)
	}
	return change, nil
}

// placesIn returns the indexes in ids of some of them.
func placesIn(ids, some []int32) []int {
	places := make([]int, len(some))
	for i, id := range some {
		places[i] = slices.Index(ids, id)
	}
	return places
}

// Changes returns the last replacements of the list, the newest first.
func (s *Categories) Changes(ctx context.Context, limit int) ([]report.CategoryChange, error) {
	return pgpool.Collect(ctx, s.city.pool, "read audit of categories", pgx.RowToStructByPos[report.CategoryChange],
		`select at, actor, actor_name, added, changed, retired, moved from category_audit order by id desc limit $1`, limit)
}

// UseLanguage makes the names in language those that messages carry. A category
// without a text in it keeps its name. It changes nothing when called again.
func (s *Categories) UseLanguage(ctx context.Context, language string) error {
	err := pgpool.Exec(ctx, s.city.pool, "name categories", `
		update categories c set name = t.name
		from category_texts t where t.category_id = c.id and t.language = $1 and c.name <> t.name`, language)
	if err != nil {
		return err
	}
	s.city.categories.drop()
	return nil
}

// A categoryCache has the categories in their order, and by id.
type categoryCache struct {
	list report.CategoryList
	byID map[int32]report.Category
}

// CategoriesByID returns the categories, also retired ones, at most a second old.
func (c *City) CategoriesByID(ctx context.Context) (map[int32]report.Category, error) {
	cache, err := c.readCategories(ctx, cacheLife)
	return cache.byID, err
}

// readCategories returns the categories as they were within life.
func (c *City) readCategories(ctx context.Context, life time.Duration) (categoryCache, error) {
	return c.categories.get(ctx, life, func(ctx context.Context) (categoryCache, error) { return selectCategories(ctx, c.pool) })
}

func selectCategories(ctx context.Context, q pgpool.Querier) (cache categoryCache, err error) {
	cache.list.Categories, err = pgpool.Collect(ctx, q, "select categories", func(row pgx.CollectableRow) (c report.Category, err error) {
		err = row.Scan(&cache.list.Revision, &c.ID, &c.Name, &c.Icon, &c.Accepts, &c.Retired, &c.Target, &c.Texts, &c.Signposts)
		return c, err
	}, `
		select l.revision, c.id, c.name, c.icon, c.accepts_reports, c.retired_at is not null, coalesce(c.target_hours, 0) * interval '1 hour',
			coalesce((select jsonb_object_agg(t.language, jsonb_build_object('Name', t.name, 'Hint', t.hint, 'Group', t.group_name))
				from category_texts t where t.category_id = c.id), '{}'),
			coalesce((select jsonb_agg(jsonb_build_object('Area', s.area_id, 'Texts', s.texts) order by s.area_id)
				from category_signposts s where s.category_id = c.id), '[]')
		from categories c, category_list l
		order by c.retired_at is not null, c.position, c.id`)
	if err != nil {
		return cache, err
	}
	cache.byID = make(map[int32]report.Category, len(cache.list.Categories))
	for _, c := range cache.list.Categories {
		cache.byID[c.ID] = c
	}
	return cache, nil
}
