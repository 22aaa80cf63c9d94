package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/asset"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// replaceTimeout bounds each statement of a layer's replacement.
const replaceTimeout = time.Minute

// Assets are the things of the city.
type Assets struct{ db *DB }

// NewAssets returns the things in db.
func NewAssets(db *DB) *Assets { return &Assets{db} }

// placedSQL selects things a with what everybody sees of them.
const placedSQL = `
	select a.id, a.layer || '/' || a.code, a.name, l.category_id, a.latitude, a.longitude, o.id, o.title, o.status, o.created_at, o.photos
	from (%s) a
	join asset_layers l on l.layer = a.layer
	left join lateral (
		select r.id, r.title, r.status, r.created_at, ` + photosSQL + ` as photos from reports r
		where r.asset_id <> 0 and r.asset_id = a.id and r.status in ('pending', 'in_progress') and r.hidden_reason is null and r.duplicate_of is null
		order by r.created_at, r.id limit 1) o on true
	order by a.far, a.id`

func scanPlaced(row pgx.CollectableRow) (a report.PlacedAsset, err error) {
	var id *uuid.UUID
	var title, status *string
	var filed *time.Time
	var photos []uuid.UUID
	err = row.Scan(&a.ID, &a.Key, &a.Name, &a.Category, &a.Position.Latitude, &a.Position.Longitude, &id, &title, &status, &filed, &photos)
	if id != nil {
		a.Open = &report.AssetReport{ID: *id, Title: *title, Status: report.Status(*status), CreatedAt: filed.UTC(), Photos: photos}
	}
	return a, err
}

// In returns the things in a box, those that are nearest to its middle first, and whether
// there are more than limit.
func (s *Assets) In(ctx context.Context, box report.Box, limit int) (found []report.PlacedAsset, more bool, err error) {
	found, err = pgpool.Collect(ctx, s.db.pool, "select things", scanPlaced, strings.Replace(placedSQL, "%s", `
		select *, point(longitude, latitude) <-> point(($1::float8 + $3) / 2, ($2::float8 + $4) / 2) as far from assets
		where retired_at is null and point(longitude, latitude) <@ box(point($1, $2), point($3, $4))
		order by far, id limit $5`, 1), box.West, box.South, box.East, box.North, limit+1)
	if len(found) > limit {
		return found[:limit], true, err
	}
	return found, false, err
}

// Named returns the thing with a key, or none.
func (s *Assets) Named(ctx context.Context, key string) ([]report.PlacedAsset, error) {
	layer, code, _ := strings.Cut(key, "/")
	return pgpool.Collect(ctx, s.db.pool, "select thing", scanPlaced, strings.Replace(placedSQL, "%s",
		`select *, 0 as far from assets where layer = $1 and code = $2 and retired_at is null`, 1), layer, code)
}

// An assetReader looks things up for filings. Those that come while a query runs share the
// next one: a filing is itself one of many in a transaction, and would cost a third more
// with a query of its own.
type assetReader struct {
	pool    *pgxpool.Pool
	mu      sync.Mutex
	running bool
	waiting map[string][]chan<- foundAsset // by the thing's key
}

type foundAsset struct {
	report.Asset
	place report.Position
	err   error
}

// Asset returns the thing with a key, for a report, and where it is. The city may not have it.
func (s *Reports) Asset(ctx context.Context, key string) (report.Asset, *report.Position, error) {
	answer := make(chan foundAsset, 1)
	s.db.assets.ask(key, answer)
	select {
	case found := <-answer:
		return found.Asset, &found.place, found.err
	case <-ctx.Done():
		return report.Asset{}, nil, ctx.Err()
	}
}

func (a *assetReader) ask(key string, answer chan<- foundAsset) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string][]chan<- foundAsset{}
	}
	a.waiting[key] = append(a.waiting[key], answer)
	if !a.running {
		a.running = true
		go a.run()
	}
}

// run reads until nobody waits.
func (a *assetReader) run() {
	for {
		a.mu.Lock()
		wanted := a.waiting
		a.waiting, a.running = nil, len(wanted) > 0
		a.mu.Unlock()
		if len(wanted) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), service.DefaultTimeout)
		found, err := a.read(ctx, slices.Collect(maps.Keys(wanted)))
		cancel()
		for key, answers := range wanted {
			thing, ok := found[key]
			if thing.err = err; err == nil && !ok {
				thing.err = report.ErrNoAsset
			}
			for _, answer := range answers {
				answer <- thing
			}
		}
	}
}

// read returns those of the things that the city has.
func (a *assetReader) read(ctx context.Context, keys []string) (map[string]foundAsset, error) {
	layers, codes := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		layers[i], codes[i], _ = strings.Cut(key, "/")
	}
	things, err := pgpool.Collect(ctx, a.pool, "select things", func(row pgx.CollectableRow) (t foundAsset, err error) {
		return t, row.Scan(&t.Key, &t.ID, &t.Name, &t.place.Latitude, &t.place.Longitude)
	}, `
		select wanted.key, a.* from unnest($1::text[], $2::text[], $3::text[]) as wanted (key, layer, code) cross join lateral (
			select id, name, latitude, longitude from assets
			where layer = wanted.layer and code = wanted.code and retired_at is null limit 1) as a`, keys, layers, codes)
	found := make(map[string]foundAsset, len(things))
	for _, t := range things {
		found[t.Key] = t
	}
	return found, err
}

// Page returns things of a layer in the order of their codes, at most limit: those with some
// codes, or else those behind one.
func (s *Assets) Page(ctx context.Context, layer string, codes []string, after string, limit int) ([]report.PlacedAsset, error) {
	return pgpool.Collect(ctx, s.db.pool, "select things", func(row pgx.CollectableRow) (a report.PlacedAsset, err error) {
		return a, row.Scan(&a.ID, &a.Key, &a.Name)
	}, `
		select id, layer || '/' || code, name from assets
		where layer = $1 and retired_at is null and (code = any($2) or $2 is null and code > $3)
		order by code limit $4`, layer, codes, after, limit)
}

// Layers returns the layers, by name.
func (s *Assets) Layers(ctx context.Context) ([]report.AssetLayer, error) {
	return pgpool.Collect(ctx, s.db.pool, "select layers", func(row pgx.CollectableRow) (l report.AssetLayer, err error) {
		return l, row.Scan(&l.Name, &l.Category, &l.Count, utc{&l.ChangedAt})
	}, `
		select l.layer, l.category_id, (select count(*) from assets a where a.layer = l.layer and a.retired_at is null), l.changed_at
		from asset_layers l order by l.layer`)
}

// Replace makes things those of a layer, with a category. A thing goes by its code: known
// ones keep their reports, and those that are left out are retired. A layer without any is
// none.
func (s *Assets) Replace(ctx context.Context, layer string, category int32, things []asset.Thing, by report.Official) (c report.AssetChange, err error) {
	c.Count = int32(len(things)) //nolint:gosec // asset.MaxAssets bounds them
	codes, names := array(things, func(t asset.Thing) string { return t.Code }), array(things, func(t asset.Thing) string { return t.Name })
	latitudes := array(things, func(t asset.Thing) float64 { return t.Position.Latitude })
	longitudes := array(things, func(t asset.Thing) float64 { return t.Position.Longitude })
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		// 200,000 things take longer than any request on a busy disk.
		err := pgpool.Exec(ctx, tx, "set timeout", `select set_config('statement_timeout', $1, true)`, fmt.Sprint(replaceTimeout.Milliseconds()))
		if err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "lock layer", `select pg_advisory_xact_lock(hashtextextended('assets ' || $1, 0))`, layer) // nobody else replaces it
		if err != nil {
			return err
		}
		var moved bool
		err = tx.QueryRow(ctx, `
			with file as (select * from unnest($2::text[], $3::text[], $4::float8[], $5::float8[]) as f (code, name, latitude, longitude)),
			differ as (
				select f.*, a.id is null or a.retired_at is not null as added from file f left join assets a on a.layer = $1 and a.code = f.code
				where a.id is null or a.retired_at is not null or (a.name, a.latitude, a.longitude) is distinct from (f.name, f.latitude, f.longitude)
			),
			written as (
				insert into assets (layer, code, name, latitude, longitude) select $1, code, name, latitude, longitude from differ
				on conflict (layer, code) do update set name = excluded.name, latitude = excluded.latitude, longitude = excluded.longitude, retired_at = null
			),
			removed as (
				update assets set retired_at = now() where layer = $1 and retired_at is null and code not in (select code from file) returning id
			)
			select (select count(*) from differ where added), (select count(*) from differ where not added), (select count(*) from removed),
				not exists (select from asset_layers where layer = $1 and category_id = $6)`,
			layer, codes, names, latitudes, longitudes, category).Scan(&c.Added, &c.Changed, &c.Removed, &moved)
		switch {
		case err != nil:
			return err
		case c.Count == 0:
			err = pgpool.Exec(ctx, tx, "delete layer", `delete from asset_layers where layer = $1`, layer)
		case moved || c.Added+c.Changed+c.Removed > 0:
			err = pgpool.Exec(ctx, tx, "write layer", `
				insert into asset_layers (layer, category_id) values ($1, $2)
				on conflict (layer) do update set category_id = excluded.category_id, changed_at = now()`, layer, category)
		default:
			return nil
		}
		if err != nil {
			return err
		}
		return settings.Record(ctx, tx, by, "assets", map[string]any{"layer": layer, "added": c.Added, "changed": c.Changed, "removed": c.Removed})
	})
	return c, err
}
