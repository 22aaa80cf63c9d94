package postgres

import (
	"bytes"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Map returns the reports that match filter, which has a box: one by one if
// there are at most maxPoints, and in clusters of the grid if there are more.
func (s *Reports) Map(ctx context.Context, filter report.Filter, grid report.Grid, maxPoints int) (report.Map, error) {
	var q query
	q.filter(filter)
	// One row more than allowed shows that there are too many.
	sql := `select r.id, r.title, r.status, r.latitude, r.longitude from reports r` + q.where() + ` limit ` + q.arg(maxPoints+1)
	points, err := pgpool.Collect(ctx, s.db.pool, "select points", func(row pgx.CollectableRow) (p report.MapPoint, err error) {
		return p, row.Scan(&p.ID, &p.Title, &p.Status, &p.Position.Latitude, &p.Position.Longitude)
	}, sql, q.fresh()...)
	if err != nil {
		return report.Map{}, err
	}
	if len(points) <= maxPoints {
		// Rows come in the order in which they were written last, which would tell everybody
		// that something was done to a report that they must not know of.
		slices.SortFunc(points, func(a, b report.MapPoint) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		return report.Map{Points: points}, nil
	}

	q = query{}
	q.filter(filter)
	var hidden string
	sql = `
		select sum(n)::bigint, jsonb_object_agg(status, n), sum(latitude) / sum(n), sum(longitude) / sum(n), (` + hiddenSQL + `)
		from (
			select r.status, count(*) as n, sum(r.latitude) as latitude, sum(r.longitude) as longitude,
				floor(r.latitude / ` + q.arg(grid.Latitude) + `) as y, floor(r.longitude / ` + q.arg(grid.Longitude) + `) as x
			from reports r` + q.where() + `
			group by y, x, r.status
		) squares
		group by y, x`
	clusters, err := pgpool.Collect(ctx, s.db.pool, "select clusters", func(row pgx.CollectableRow) (c report.MapCluster, err error) {
		return c, row.Scan(&c.Count, &c.Statuses, &c.Center.Latitude, &c.Center.Longitude, &hidden)
	}, sql, q.fresh()...)
	if err != nil {
		return report.Map{}, err
	}
	return report.Map{Clusters: clusters, Hidden: hidden}, nil
}

// hiddenSQL identifies the reports that are hidden: it is another text whenever they
// are others. They are few, and their index has no others. Those that were filed for the
// city alone were in no cluster, and leave it as it is: a map that takes longer would tell
// everybody when one was filed.
const hiddenSQL = `
	select count(*) || ' ' || coalesce(sum(uuid_hash_extended(h.id, 0)), 0) from reports h
	where h.hidden_reason is not null and (h.visibility = 'public' or h.restricted_version is not null)`

// Fingerprint is another text whenever the reports that match filter, or anything that
// everybody sees of them, have changed: each change has made a version.
func (s *Reports) Fingerprint(ctx context.Context, filter report.Filter) (fingerprint string, err error) {
	var q query
	q.filter(filter)
	sql := `select count(*) || ' ' || coalesce(sum(uuid_hash_extended(r.id, r.version)), 0) from reports r` + q.where()
	return pgpool.Value[string](ctx, s.db.pool, "select fingerprint of reports", sql, q.fresh()...)
}

// Hidden identifies the reports that are hidden now, as the Map of clusters does.
func (s *Reports) Hidden(ctx context.Context) (hidden string, err error) {
	return pgpool.Value[string](ctx, s.db.pool, "select hidden reports", hiddenSQL)
}
