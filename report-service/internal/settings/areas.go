package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// areaRows is how many reports a step of the job for areas examines. The job leaves
	// a tenth of the time to others.
	areaRows  = 5000
	areaPause = 9
	// areaSettled is after what time no report comes any more with an area of the list
	// before: a replica has that for cacheLife, and a filing takes 5 s at most.
	areaSettled = 10 * time.Second
)

// Areas are the parts of the city that an operator has drawn.
type Areas struct{ city *City }

// NewAreas returns the areas of a city.
func NewAreas(city *City) *Areas { return &Areas{city} }

// List returns the areas, at most a second old.
func (s *Areas) List(ctx context.Context) (*area.List, error) {
	return s.city.readAreas(ctx, cacheLife)
}

// At returns the area that a place is in, or the zero value.
func (s *Areas) At(ctx context.Context, p *report.Position) (report.Area, error) {
	areas, err := s.List(ctx)
	if err != nil {
		return report.Area{}, err
	}
	return areas.At(p), nil
}

// readAreas returns the areas as they were within life. Shapes are large: only those of
// another revision are read again.
func (c *City) readAreas(ctx context.Context, life time.Duration) (*area.List, error) {
	known := c.areas.last()
	return c.areas.get(ctx, life, func(ctx context.Context) (*area.List, error) {
		revision, err := pgpool.Value[int64](ctx, c.pool, "select revision of areas", `select revision from area_list`)
		if err != nil {
			return nil, err
		}
		if known != nil && known.Revision == revision {
			return known, nil
		}
		return selectAreas(ctx, c.pool)
	})
}

func selectAreas(ctx context.Context, q pgpool.Querier) (*area.List, error) {
	var revision int64
	areas, err := pgpool.Collect(ctx, q, "select areas", func(row pgx.CollectableRow) (a area.Area, err error) {
		var id *int32 // null without any area
		var code *string
		err = row.Scan(&revision, &id, &code, &a.Names, &a.Shape, &a.Retired)
		if id != nil {
			a.ID, a.Code = *id, *code
		}
		return a, err
	}, `
		select l.revision, a.id, a.code, a.names, case when a.retired_at is null then a.shape end, a.retired_at is not null
		from area_list l left join areas a on true
		order by a.retired_at is not null, a.position, a.id`)
	if err != nil {
		return nil, err
	}
	return area.NewList(revision, slices.DeleteFunc(areas, func(a area.Area) bool { return a.ID == 0 })), nil
}

// Located reports whether all open reports are sorted into the areas of the list's
// revision.
func (s *Areas) Located(ctx context.Context) (bool, error) {
	return pgpool.Value[bool](ctx, s.city.pool, "select state of areas", `select located = revision from area_list`)
}

// Replace makes areas the city's list, in their order, if the stored one is at a revision
// in at. An area goes by its code: known ones keep their reports, and those that are left
// out are retired.
func (s *Areas) Replace(ctx context.Context, areas []area.Area, at report.Versions, by report.Official) (*area.List, error) {
	var stored *area.List
	err := pgx.BeginFunc(ctx, s.city.pool, func(tx pgx.Tx) error {
		revision, err := pgpool.Value[int64](ctx, tx, "lock areas", `select revision from area_list for update`)
		if err != nil {
			return err
		}
		if !at.Has(revision) {
			return at.StaleList(revision)
		}
		before, err := selectAreas(ctx, tx)
		if err != nil {
			return err
		}
		detail := areasChanged(before.InUse(), areas)
		if len(detail) == 0 {
			stored = before
			return nil
		}
		rows := pgx.Batch{}
		codes := make([]string, len(areas))
		for i, a := range areas {
			codes[i] = a.Code
			rows.Queue(`
				insert into areas (code, position, names, shape) values ($1, $2, $3, $4)
				on conflict (code) do update set position = excluded.position, names = excluded.names, shape = excluded.shape, retired_at = null`,
				a.Code, i+1, a.Names, a.Shape)
		}
		rows.Queue(`update areas set retired_at = now() where code <> all($1) and retired_at is null`, codes)
		rows.Queue(`update area_list set revision = revision + 1, changed_at = clock_timestamp()`)
		if err := tx.SendBatch(ctx, &rows).Close(); err != nil {
			return fmt.Errorf("replace areas: %w", err)
		}
		if stored, err = selectAreas(ctx, tx); err != nil {
			return err
		}
		return Record(ctx, tx, by, "areas", detail)
	})
	s.city.areas.drop()
	return stored, err
}

// areasChanged returns the codes of areas that differ, and whether they are in another order.
func areasChanged(before, after []area.Area) map[string]any {
	detail, moved := differences(before, after, func(a area.Area) string { return a.Code }, func(a, b area.Area) bool {
		return maps.Equal(a.Names, b.Names) && reflect.DeepEqual(a.Shape, b.Shape)
	})
	if moved {
		detail["moved"] = true
	}
	return detail
}

// A locating is how far the job for areas is.
type locating struct {
	After    uuid.UUID
	Revision int64 // of the areas; with another one it starts over
	Settled  bool  // whether no report came with an area of the list before, once the run began
	Missed   bool  // whether it left out a report that another transaction had locked
}

// Job returns the job that sorts reports into the areas of a new list: those on which
// work goes on, and those that are in none yet. Who is in charge of a report follows from
// that. It needs no catching up: runs come until one has found all reports.
func (s *Areas) Job() schedule.Job {
	return schedule.Job{Name: "areas", When: schedule.Every(time.Minute), Step: s.step}
}

// toLocate are the reports r that a new list may put into another area. What is closed
// keeps its area: a number of last year has to stay as it was.
const toLocate = `r.latitude is not null and r.withdrawn_at is null
	and (r.status in ('pending', 'in_progress') or r.disputed_at is not null or r.area_id = 0)`

func (s *Areas) step(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
	began := time.Now()
	var at locating
	if run.Cursor != nil {
		if err := json.Unmarshal(run.Cursor, &at); err != nil {
			return schedule.Progress{}, fmt.Errorf("read cursor: %w", err)
		}
	}
	areas, err := s.city.readAreas(ctx, 0)
	if err != nil {
		return schedule.Progress{}, err
	}
	var p schedule.Progress
	if at.Revision != areas.Revision {
		at = locating{Revision: areas.Revision}
		var located int64
		err := tx.QueryRow(ctx, `
			select located, changed_at < clock_timestamp() - $1::interval, case when located < revision then (select count(*) from reports r where `+toLocate+`) else 0 end
			from area_list`, areaSettled).Scan(&located, &at.Settled, &p.Total)
		if err != nil {
			return schedule.Progress{}, fmt.Errorf("select state of areas: %w", err)
		}
		if located == areas.Revision {
			return schedule.Progress{Last: true}, nil
		}
	}
	if p.Done, p.Last, err = s.locate(ctx, tx, areas, &at); err != nil {
		return schedule.Progress{}, err
	}
	if p.Last && at.Settled && !at.Missed {
		if err := pgpool.Exec(ctx, tx, "end locating", `update area_list set located = $1 where located < $1`, at.Revision); err != nil {
			return schedule.Progress{}, err
		}
	}
	p.Pause = time.Since(began) / areaPause
	if p.Cursor, err = json.Marshal(at); err != nil {
		return schedule.Progress{}, fmt.Errorf("write cursor: %w", err)
	}
	return p, nil
}

// locate finds the areas of the reports from at on, and moves at. It writes only what
// differs, and leaves out what is locked or was moved since it was read.
func (s *Areas) locate(ctx context.Context, tx pgx.Tx, areas *area.List, at *locating) (done int64, last bool, err error) {
	end := uuid.Max
	err = tx.QueryRow(ctx, `select id from reports where id > $1 order by id offset $2 limit 1`, at.After, areaRows-1).Scan(&end)
	if last = errors.Is(err, pgx.ErrNoRows); err != nil && !last {
		return 0, false, fmt.Errorf("list reports: %w", err)
	}
	var id uuid.UUID
	var place report.Position
	var before int32
	var moved []uuid.UUID
	var latitudes, longitudes []float64
	var found []int32
	err = pgpool.ForEach(ctx, tx, "find reports to locate", []any{&id, &place.Latitude, &place.Longitude, &before}, func() error {
		done++
		if now := areas.At(&place); now.ID != before {
			moved, found = append(moved, id), append(found, now.ID)
			latitudes, longitudes = append(latitudes, place.Latitude), append(longitudes, place.Longitude)
		}
		return nil
	}, `
		select r.id, r.latitude, r.longitude, r.area_id from reports r where r.id > $1 and r.id <= $2 and `+toLocate, at.After, end)
	if err != nil {
		return 0, false, err
	}
	at.After = end
	if len(moved) == 0 {
		return done, last, nil
	}
	tag, err := tx.Exec(ctx, `
		with found as (
			select r.id, m.area_id from unnest($1::uuid[], $2::float8[], $3::float8[], $4::int[]) as m (id, latitude, longitude, area_id)
			join reports r on r.id = m.id
			where r.latitude = m.latitude and r.longitude = m.longitude and `+toLocate+`
			order by r.id for no key update of r skip locked
		)
		update reports set area_id = found.area_id from found where reports.id = found.id`, moved, latitudes, longitudes, found)
	if err != nil {
		return 0, false, fmt.Errorf("locate reports: %w", err)
	}
	at.Missed = at.Missed || tag.RowsAffected() < int64(len(moved))
	return done, last, nil
}
