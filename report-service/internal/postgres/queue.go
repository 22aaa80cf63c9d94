package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
func (s *Workbench) Waiting(ctx context.Context, by report.User) (n report.Waiting, err error) {
	var q query
	within := q.within(by.Reach(report.Handle), "")
	err = s.db.pool.QueryRow(ctx, `
		select
			(select count(distinct c.report_id) from comments c join reports r on r.id = c.report_id and `+unhiddenSQL+` where not c.seen and c.hidden_reason is null and `+within+`),
			(select count(distinct a.report_id) from abuse_reports a join reports r on r.id = a.report_id where a.settled_at is null and `+within+`),
			(select count(*) from photos p join reports r on r.id = p.report_id where p.state = 'held' and `+within+`),
			(select count(*) from reports r where r.disputed_at is not null and `+unhiddenSQL+` and `+within+`)`, q.args...).Scan(&n.Commented, &n.Abuse, &n.Photos, &n.Disputed)
	if err != nil {
		return n, fmt.Errorf("count what waits: %w", err)
	}
	return n, nil
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
	if err := s.db.pool.QueryRow(ctx, `select count(*) from reports r`+disputed.where(), disputed.values(filter)...).Scan(&counts.Disputed); err != nil {
		return report.Counts{}, fmt.Errorf("count disputed reports: %w", err)
	}
	return counts, nil
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
	q := query{args: []any{string(interval), from, to, city.Zone.String()}}
	q.filter(filter)
	q.and(`h.changed_at >= $2 and h.changed_at < $3`)
	// The first entry of a report's history is its filing.
	counts, err := pgpool.Collect(ctx, s.db.pool, "count over time", pgx.RowToStructByPos[report.PeriodCounts], `
		select date_trunc($1, h.changed_at, $4) as begins, r.category_id,
			count(*) filter (where h.from_status is null),
			count(*) filter (where h.to_status = 'resolved'),
			count(*) filter (where h.to_status = 'rejected'),
			count(*) filter (where h.from_status in ('resolved', 'rejected')), 0, 0, 0
		from status_history h join reports r on r.id = h.report_id`+q.where()+`
		  and (h.from_status is null or 'resolved' in (h.from_status, h.to_status) or 'rejected' in (h.from_status, h.to_status))
		  and h.from_status is distinct from h.to_status -- without replies
		group by begins, r.category_id
		order by begins, r.category_id`, q.values(filter)...)
	if err != nil {
		return nil, err
	}
	verdicts := query{args: []any{from, to, string(interval), city.Zone.String()}}
	verdicts.filter(filter)
	said, err := pgpool.Collect(ctx, s.db.pool, "count verdicts over time", pgx.RowToStructByPos[report.PeriodCounts], `
		select date_trunc($3, v.at, $4) as begins, r.category_id, 0, 0, 0, 0, `+verdictSums+countedVerdicts+verdicts.where()+`
		group by begins, r.category_id`, verdicts.values(filter)...)
	counts = report.AddVerdicts(counts, said)
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
	q.and(`h.changed_at >= $1 and h.changed_at < $2`)
	rows, err := pgpool.Collect(ctx, s.db.pool, "count by part", func(row pgx.CollectableRow) (n struct {
		report.PartCounts
		all bool
	}, err error,
	) {
		var seconds *float64
		err = row.Scan(&n.all, &n.Part, &n.Filed, &n.Resolved, &n.Rejected, &seconds)
		if seconds != nil {
			n.Median = new(time.Duration(*seconds * float64(time.Second)))
		}
		return n, err
	}, `
		select grouping(n.part) = 1, coalesce(n.part, 0), count(*) filter (where n.filed),
			count(*) filter (where n.to_status = 'resolved'), count(*) filter (where n.to_status = 'rejected'),
			percentile_cont(0.5) within group (order by n.seconds) filter (where n.to_status = 'resolved')
		from (
			select `+partSQL(by)+` as part, h.from_status is null as filed, h.to_status,
				extract(epoch from h.changed_at - r.created_at)::float8 as seconds
			from status_history h join reports r on r.id = h.report_id join categories c on c.id = r.category_id`+routesSQL+q.where()+`
			  and (h.from_status is null or h.to_status in ('resolved', 'rejected') and h.from_status <> h.to_status)
		) n
		group by grouping sets ((), (n.part))
		order by 1 desc, 2`, q.values(filter)...)
	if err != nil {
		return total, nil, err
	}
	for _, row := range rows {
		if row.all {
			total = row.PartCounts
		} else {
			parts = append(parts, row.PartCounts)
		}
	}
	parts, err = s.addVerdicts(ctx, parts, q.args[:2:2], filter, by)
	return total, parts, err
}

// countedVerdicts selects reports with their verdicts as 1 in one of three columns, between
// $1 and $2: what was never said counts when the time for it ended.
const countedVerdicts = `
	from (
		select report_id, given_at as at, fixed from verdicts where given_at >= $1 and given_at < $2
		union all
		select report_id, until, null from verdicts where given_at is null and until >= $1 and until < least($2, now())
	) v join reports r on r.id = v.report_id join categories c on c.id = r.category_id`

// verdictSums are the figures of countedVerdicts.
const verdictSums = `count(*) filter (where v.fixed), count(*) filter (where not v.fixed), count(*) filter (where v.fixed is null)`

// addVerdicts adds the verdicts between two times on the reports that match filter to the
// counts of parts of the city, which are in the order of their ids.
func (s *Workbench) addVerdicts(ctx context.Context, counts []report.PartCounts, between []any, filter report.Filter, by report.PartOf) ([]report.PartCounts, error) {
	q := query{args: between}
	q.filter(filter)
	said, err := pgpool.Collect(ctx, s.db.pool, "count verdicts by part", func(row pgx.CollectableRow) (n report.PartCounts, err error) {
		return n, row.Scan(&n.Part, &n.Confirmed, &n.VerdictCounts.Disputed, &n.Silent)
	}, `
		select `+partSQL(by)+` as part, `+verdictSums+countedVerdicts+routesSQL+q.where()+`
		group by part`, q.args...)
	for _, n := range said {
		i, found := slices.BinarySearchFunc(counts, n, func(a, b report.PartCounts) int { return cmp.Compare(a.Part, b.Part) })
		if found {
			counts[i].VerdictCounts = n.VerdictCounts
		} else {
			counts = slices.Insert(counts, i, n)
		}
	}
	return counts, err
}
