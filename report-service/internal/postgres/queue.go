package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Queue returns a page of the reports that match filter, in its order, as
// officials see them. Disputed ones come before all others, unless filter is without pins.
func (s *Workbench) Queue(ctx context.Context, filter report.Filter, after *report.Cursor, limit int) (report.Queue, error) {
	if filter.Disputed || filter.Unpinned {
		return s.queue(ctx, filter, after, limit)
	}
	pins := report.Queue{}
	if after == nil || after.Of(filter.Pinned()) == nil {
		var err error
		if pins, err = s.queue(ctx, filter.Pinned(), after, limit); err != nil || pins.Next != nil {
			return pins, err
		}
		after = nil
	}
	room := limit - len(pins.Tasks)
	rest, err := s.queue(ctx, filter, after, max(room, 1), `r.disputed_at is null`)
	switch {
	case err != nil:
		return report.Queue{}, err
	case room > 0:
		return report.Queue{Tasks: append(pins.Tasks, rest.Tasks...), Next: rest.Next}, nil
	case len(rest.Tasks) > 0: // they are the next page
		pins.Next = filter.Pinned().CursorAtTask(pins.Tasks[len(pins.Tasks)-1])
	}
	return pins, nil
}

// queue returns a page of the reports that match filter and the conditions.
func (s *Workbench) queue(ctx context.Context, filter report.Filter, after *report.Cursor, limit int, conditions ...string) (report.Queue, error) {
	var q query
	q.filter(filter)
	for _, c := range conditions {
		q.and(c)
	}
	page, order := q.page(filter, after, limit)
	tasks, err := pgpool.Collect(ctx, s.db.pool, "select queue", worked.row, taskSQL(page)+order, q.values(filter)...)
	if err != nil {
		return report.Queue{}, err
	}
	if len(tasks) <= limit {
		return report.Queue{Tasks: tasks}, nil
	}
	return report.Queue{Tasks: tasks[:limit], Next: filter.CursorAtTask(tasks[limit-1])}, nil
}

// Waiting counts what waits for officials, of reports in reach of by.
func (s *Workbench) Waiting(ctx context.Context, by report.User) (report.Waiting, error) {
	var q query
	within := q.within(by.Reach(report.Handle), "")
	return pgpool.One(ctx, s.db.pool, "count what waits", pgx.ErrNoRows, pgx.RowToStructByPos[report.Waiting], `
		select
			(select count(distinct c.report_id) from comments c join reports r on r.id = c.report_id and `+unhiddenSQL+` where not c.seen and c.hidden_reason is null and `+within+`),
			(select count(distinct a.report_id) from abuse_reports a join reports r on r.id = a.report_id where a.settled_at is null and `+within+`),
			(select count(*) from photos p join reports r on r.id = p.report_id where p.state = 'held' and `+within+`),
			(select count(*) from reports r where r.disputed_at is not null and `+unhiddenSQL+` and `+within+`)`, q.args...)
}

// Counts counts the reports that match filter, and those for each other choice
// of its status, category, department, assignee or area. One pass over an index is
// enough for all.
func (s *Workbench) Counts(ctx context.Context, filter report.Filter) (report.Counts, error) {
	rest := filter
	rest.Statuses, rest.Categories, rest.Departments, rest.Assignee, rest.Areas = nil, nil, nil, nil, nil
	var q query
	q.filter(rest)
	shares, err := pgpool.Collect(ctx, s.db.pool, "count queue", func(row pgx.CollectableRow) (n report.GroupCount, err error) {
		return n, row.Scan(&n.Status, &n.Category, &n.Department, &n.Assignee.ID, &n.Assignee.Name, &n.Area, &n.Count)
	}, `
		select r.status, r.category_id, coalesce(`+chargeSQL+`, 0), coalesce(o.id, ''), coalesce(o.name, ''), `+areaSQL+`, r.count
		from (
			select r.status, r.category_id, r.department_id, r.assignee_id, r.area_id, count(*)
			from reports r`+q.where()+`
			group by r.status, r.category_id, r.department_id, r.assignee_id, r.area_id
		) r
		join categories c on c.id = r.category_id`+routesSQL+`
		left join officials o on o.id = r.assignee_id`, q.values(filter)...)
	if err != nil {
		return report.Counts{}, err
	}
	counts := report.Count(filter, shares)
	var disputed query
	disputed.filter(filter.Pinned())
	counts.Disputed, err = pgpool.Value[int64](ctx, s.db.pool, "count disputed reports", `select count(*) from reports r`+disputed.where(), disputed.values(filter)...)
	return counts, err
}

// CountOverTime counts the reports that match the rest of filter, by what
// happened to them from FiledFrom on and before FiledTo: by period in the zone of the
// city's calendar and category, the earliest first. Periods in which nothing happened
// are left out.
func (s *Workbench) CountOverTime(ctx context.Context, filter report.Filter, interval report.Interval) ([]report.PeriodCounts, error) {
	from, to := filter.FiledFrom, filter.FiledTo
	filter.FiledFrom, filter.FiledTo = time.Time{}, time.Time{}
	city, err := settings.ReadCalendar(ctx, s.db.pool)
	if err != nil {
		return nil, err
	}
	q := query{args: []any{from, to, string(interval), city.Zone.String()}}
	q.filter(filter)
	counts, err := pgpool.Collect(ctx, s.db.pool, "count over time", pgx.RowToStructByPos[report.PeriodCounts], `
		select date_trunc($3, e.at, $4) as begins, r.category_id, `+endedSums+`,
			count(*) filter (where e.from_status in ('resolved', 'rejected')), `+verdictSums+countedEvents+q.where()+`
		group by begins, r.category_id
		order by begins, r.category_id`, q.values(filter)...)
	for i := range counts {
		counts[i].Begin = counts[i].Begin.In(city.Zone)
	}
	return counts, err
}

// partSQL is the part of the city by which reports r are counted.
func partSQL(by report.PartOf) string {
	if by == report.ByArea {
		return `r.area_id`
	}
	return `coalesce(` + chargeSQL + `, 0)`
}

// CountOpen returns how many reports that match the rest of filter were open at
// FiledTo, by the part of the city that has them now, 0 for none: those that are open
// now, without what happened since.
func (s *Workbench) CountOpen(ctx context.Context, filter report.Filter, by report.PartOf) (map[int32]int64, error) {
	q := query{args: []any{filter.FiledTo}}
	filter.FiledFrom, filter.FiledTo = time.Time{}, time.Time{}
	q.filter(filter)
	where := q.where()
	type count struct {
		Part int32
		Open int64
	}
	counts, err := pgpool.Collect(ctx, s.db.pool, "count what was open", pgx.RowToStructByPos[count], `
		select n.part, sum(n.n)::bigint
		from (
			select `+partSQL(by)+` as part, 1 as n
			from reports r join categories c on c.id = r.category_id`+routesSQL+where+` and r.status not in ('resolved', 'rejected')
			union all
			select `+partSQL(by)+`, case when h.to_status in ('resolved', 'rejected') then 1 else -1 end
			from status_history h join reports r on r.id = h.report_id join categories c on c.id = r.category_id`+routesSQL+where+` and h.changed_at >= $1
			  and (h.from_status is null or (h.from_status in ('resolved', 'rejected')) <> (h.to_status in ('resolved', 'rejected')))
		) n
		group by n.part
		having sum(n.n) <> 0`, q.values(filter)...)
	open := make(map[int32]int64, len(counts))
	for _, c := range counts {
		open[c.Part] = c.Open
	}
	return open, err
}

// CountByPart counts as CountOverTime does, by parts of the city; the sum of all is
// in total.
func (s *Workbench) CountByPart(ctx context.Context, filter report.Filter, by report.PartOf) (total report.PartCounts, parts []report.PartCounts, err error) {
	q := query{args: []any{filter.FiledFrom, filter.FiledTo}}
	filter.FiledFrom, filter.FiledTo = time.Time{}, time.Time{}
	q.filter(filter)
	q.and(`(e.from_status is null or e.to_status in ('resolved', 'rejected'))`)
	type counts struct {
		All bool
		report.PartCounts
	}
	rows, err := pgpool.Collect(ctx, s.db.pool, "count by part", pgx.RowToStructByPos[counts], `
		select grouping(e.part) = 1, coalesce(e.part, 0), `+endedSums+`, `+verdictSums+`,
			make_interval(secs => percentile_cont(0.5) within group (order by e.seconds) filter (where e.to_status = 'resolved'))
		from (
			select e.*, `+partSQL(by)+` as part, extract(epoch from e.at - r.created_at)::float8 as seconds`+countedEvents+routesSQL+q.where()+`
		) e
		group by grouping sets ((), (e.part))
		order by 1 desc, 2`, q.values(filter)...)
	if err != nil {
		return total, nil, err
	}
	for _, row := range rows {
		if row.All {
			total = row.PartCounts
		} else {
			parts = append(parts, row.PartCounts)
		}
	}
	return total, parts, nil
}

// countedEvents selects reports with what happened to them between $1 and $2: they were
// filed, closed or opened again, or their reporters gave verdicts. A verdict that was never
// given counts when the time for it ended. The first entry of a report's history is its
// filing; replies are left out.
const countedEvents = `
	from (
		select report_id, changed_at as at, from_status, to_status, null::text as verdict from status_history
		where changed_at >= $1 and changed_at < $2 and from_status is distinct from to_status
			and (from_status is null or 'resolved' in (from_status, to_status) or 'rejected' in (from_status, to_status))
		union all
		select report_id, given_at, null, null, case when fixed then 'confirmed' else 'disputed' end
		from verdicts where given_at >= $1 and given_at < $2
		union all
		select report_id, until, null, null, 'silent' from verdicts where given_at is null and until >= $1 and until < least($2, now())
	) e join reports r on r.id = e.report_id join categories c on c.id = r.category_id`

// endedSums and verdictSums are figures of countedEvents.
const (
	endedSums = `count(*) filter (where e.from_status is null and e.verdict is null),
			count(*) filter (where e.to_status = 'resolved'), count(*) filter (where e.to_status = 'rejected')`
	verdictSums = `count(*) filter (where e.verdict = 'confirmed'), count(*) filter (where e.verdict = 'disputed'), count(*) filter (where e.verdict = 'silent')`
)
