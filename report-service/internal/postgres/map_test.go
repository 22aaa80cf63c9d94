package postgres_test

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A map has every report of its area once: one by one while they are few, in
// clusters when they are many, and as the filter wants it.
func TestMap(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const east, north = 6, 5
	for i := range east * north {
		d := draft(report.Public)
		d.Title = fmt.Sprintf("Lamp %d", i)
		d.Position = &report.Position{Latitude: -6.6 + float64(i/east)/100, Longitude: 106.8 + float64(i%east)/100}
		f.file(ann, d)
	}
	nowhere := draft(report.Public)
	nowhere.Position = nil
	f.file(ann, nowhere)

	city := &report.Box{West: 106.7, South: -6.7, East: 106.9, North: -6.5}
	for name, tt := range map[string]struct {
		filter   report.Filter
		zoom     int
		limit    int
		points   int
		clusters int64 // how many reports are in them
	}{
		"few":        {report.Filter{Box: city}, 12, 30, 30, 0},
		"many":       {report.Filter{Box: city}, 12, 29, 0, 30},
		"near":       {report.Filter{Box: &report.Box{West: 106.795, South: -6.605, East: 106.815, North: -6.595}}, 16, 29, 2, 0},
		"elsewhere":  {report.Filter{Box: &report.Box{West: 1, South: 1, East: 2, North: 2}}, 12, 10, 0, 0},
		"one status": {report.Filter{Box: city, Statuses: []report.Status{report.Rejected}}, 12, 10, 0, 0},
		"by a word":  {report.Filter{Box: city, Words: report.Words("lamp 7")}, 12, 10, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := f.Map(t.Context(), tt.filter, report.GridOf(*tt.filter.Box, tt.zoom), tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			var inClusters int64
			for _, c := range got.Clusters {
				inClusters += c.Count
				var byStatus int64
				for _, n := range c.Statuses {
					byStatus += n
				}
				if !city.Contains(c.Center) || c.Count < 1 || byStatus != c.Count {
					t.Errorf("a cluster is none of the city's: %+v", c)
				}
			}
			if len(got.Points) != tt.points || inClusters != tt.clusters {
				t.Errorf("got %d points and %d reports in clusters, want %d and %d", len(got.Points), inClusters, tt.points, tt.clusters)
			}
		})
	}
	f.exec(`update reports set status = 'resolved' where title like '%1'`)
	one, err := f.Map(t.Context(), report.Filter{Box: city}, report.Grid{Latitude: 1e3, Longitude: 1e3}, 1)
	if err != nil || len(one.Clusters) != 1 || one.Clusters[0].Statuses[report.Resolved] != 3 || one.Clusters[0].Statuses[report.Pending] != 27 ||
		math.Abs(one.Clusters[0].Center.Latitude+6.58) > 1e-6 {
		t.Errorf("all as one: %+v (error: %v), want 3 resolved and 27 pending around -6.58", one.Clusters, err)
	}
	// From afar all are one cluster or a few; from near none shares one.
	far, err := f.Map(t.Context(), report.Filter{Box: city}, report.GridOf(*city, 3), 1)
	if err != nil || len(far.Clusters) > 4 {
		t.Errorf("at zoom 3: %d clusters (error: %v), want at most 4", len(far.Clusters), err)
	}
	near, err := f.Map(t.Context(), report.Filter{Box: city}, report.GridOf(*city, 18), 1)
	if err != nil || len(near.Clusters) != east*north {
		t.Errorf("at zoom 18: %d clusters (error: %v), want %d", len(near.Clusters), err, east*north)
	}
}

// The points of a map stay in their order, whatever is done to a report in private.
func TestPointsStayInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.file(ann, draft(report.Anonymous)), f.file(bob, draft(report.Public))
	f.ask(first.ID)
	f.exec(`vacuum reports`) // the next change writes where the one before was
	f.exec(`update reports set waiting = false where id = $1`, second.ID)
	globe := &report.Box{West: -180, South: -90, East: 180, North: 90}
	got, err := f.Map(t.Context(), report.Filter{Box: globe}, report.GridOf(*globe, 3), 10)
	if err != nil || len(got.Points) != 2 || got.Points[0].ID != first.ID || got.Points[1].ID != second.ID {
		t.Errorf("points are %+v (error %v), want them in the order of their filing", got.Points, err)
	}
}

// The migration rounds the positions that are there as the service rounds new
// ones, and touches no others.
func TestPositionsThatAreThereAreRounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := make(map[uuid.UUID]report.Position)
	for i := range 200 {
		filed := f.file(ann, draft(report.Public))
		at := report.Position{Latitude: rand.Float64()*180 - 90, Longitude: rand.Float64()*360 - 180}
		if i%2 == 0 {
			at = *report.NewPosition(at.Latitude, at.Longitude)
		}
		f.exec(`update reports set latitude = $2, longitude = $3 where id = $1`, filed.ID, at.Latitude, at.Longitude)
		want[filed.ID] = *report.NewPosition(at.Latitude, at.Longitude)
	}
	nowhere := draft(report.Public)
	nowhere.Position = nil
	f.file(ann, nowhere)
	files, err := migrations.Files(migrations.Report)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := fs.ReadFile(files, "0017_positions.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, rows := range []int64{100, 0} {
		tag, err := f.pool.Exec(t.Context(), string(sql))
		if err != nil || tag.RowsAffected() != rows {
			t.Errorf("time %d: %d rows, error %v; want %d", i, tag.RowsAffected(), err, rows)
		}
	}
	for id, at := range want {
		view, err := f.Get(t.Context(), id, report.User{})
		if err != nil || *view.Position != at {
			t.Errorf("position %v, error %v; want %v", view.Position, err, at)
		}
	}
}

// A list by words or in a box is planned for these words and this box, however often
// such a list was asked for: no plan for any values is left at the server.
func TestListsByWordsArePlannedEachTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fileAt(106.5)
	city := &report.Box{West: 106, South: -7, East: 107, North: -6}
	for range 8 {
		for _, words := range []string{"", "lamp"} {
			filter := report.Filter{Box: city, Words: report.Words(words)}
			if _, err := f.Map(t.Context(), filter, report.GridOf(*city, 12), 1); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Fingerprint(t.Context(), filter); err != nil {
				t.Fatal(err)
			}
			if _, err := f.List(t.Context(), filter, nil, 10, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := f.workbench.Queue(t.Context(), filter, nil, 10); err != nil {
				t.Fatal(err)
			}
			if _, err := f.workbench.Counts(t.Context(), filter); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, conn := range f.pool.AcquireAllIdle(t.Context()) {
		var kept []string
		err := conn.QueryRow(t.Context(), `
			select coalesce(array_agg(statement), '{}') from pg_prepared_statements where statement ~ $1`, pgx.QueryExecModeExec, `search_form|latitude between`).Scan(&kept)
		conn.Release()
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) > 0 {
			t.Errorf("plans are kept for %d statements, want none: %q", len(kept), kept)
		}
	}
}
