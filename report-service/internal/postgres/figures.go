package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// CountOverTime counts what happened from FiledFrom on and before FiledTo to the
// reports that the rest of filter lets pass, by period and category, the
// earliest first. Periods in which nothing happened are left out.
func (s *Workbench) CountOverTime(ctx context.Context, filter report.Filter, interval report.Interval) ([]report.PeriodCounts, error) {
	from, to := filter.FiledFrom, filter.FiledTo
	filter.FiledFrom, filter.FiledTo = time.Time{}, time.Time{}
	q := query{args: []any{string(interval), from, to}}
	q.filter(filter)
	q.and(`h.changed_at >= $2 and h.changed_at < $3`)
	// The first entry of a report's history is its filing.
	return collect(ctx, s.db.pool, "count over time", pgx.RowToStructByPos[report.PeriodCounts], `
		select date_trunc($1, h.changed_at at time zone 'UTC') as begins, r.category_id,
			count(*) filter (where h.from_status is null),
			count(*) filter (where h.to_status = 'resolved'),
			count(*) filter (where h.to_status = 'rejected')
		from status_history h join reports r on r.id = h.report_id`+q.where()+`
		  and (h.from_status is null or h.to_status in ('resolved', 'rejected'))
		group by begins, r.category_id
		order by begins, r.category_id`, q.args...)
}
