package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// viewed is what a reader sees of a report, who is $1 in viewSQL, or empty for someone who is
// not signed in. The id of a reporter, and the name of an anonymous one, do not leave the
// database. An erased reporter has no row.
var viewed = append(of(func(v *report.View) *report.Report { return &v.Report }, shown()...),
	selected[report.View]{`case when r.privacy_level = 'public' then coalesce(p.reporter_name, '') else '' end`, func(v *report.View) any { return &v.ReporterName }},
	selected[report.View]{`coalesce(p.reporter_id = $1, false)`, func(v *report.View) any { return &v.Mine }},
	selected[report.View]{`coalesce(v.value, 0)`, func(v *report.View) any { return &v.MyVote }},
	selected[report.View]{photosSQL, func(v *report.View) any { return &v.Photos }},
	selected[report.View]{`case when r.waiting and p.reporter_id = $1 then ` + openQuestionSQL + ` end`, func(v *report.View) any { return &v.Question }},
	selected[report.View]{`case when p.reporter_id = $1 and r.status = 'resolved' and ` + unhiddenSQL + ` then ` + verdictSQL + ` end`, func(v *report.View) any { return &v.Verdict }})

// viewSQL selects views.
var viewSQL = viewOf(`reports r`)

// viewOf selects views of some reports r.
func viewOf(reports string) string {
	return `
	select ` + viewed.sql() + `
	from ` + reports + `
	join categories c on c.id = r.category_id
	left join reporters p on p.report_id = r.id
	left join votes v on v.report_id = r.id and v.voter_id = $1`
}

// queueView queues the reading of a report as the reader sees it once the batch is written.
func queueView(b *pgx.Batch, reader string, id uuid.UUID, v *report.View) {
	b.Queue(viewSQL+` where r.id = $2`, reader, id).QueryRow(func(row pgx.Row) error { return viewed.into(row, v) })
}

// worked is what officials see of a report in the queue.
var worked = append(of(func(t *report.Task) *report.Report { return &t.Report }, shown("description")...),
	selected[report.Task]{`o.id`, func(t *report.Task) any { return officialID(&t.Assignee) }},
	selected[report.Task]{`o.name`, func(t *report.Task) any { return officialName(&t.Assignee) }},
	selected[report.Task]{`d.id`, func(t *report.Task) any { return departmentID(&t.Department) }},
	selected[report.Task]{`d.name`, func(t *report.Task) any { return departmentName(&t.Department) }},
	selected[report.Task]{`r.department_id is null`, func(t *report.Task) any { return &t.Routed }},
	selected[report.Task]{`(select count(*) from report_acts a where a.report_id = r.id and a.action = 'note')`, func(t *report.Task) any { return &t.Notes }},
	selected[report.Task]{`r.duplicate_of`, func(t *report.Task) any { return &t.Original }},
	selected[report.Task]{`r.due_at`, func(t *report.Task) any { return &t.DueAt }},
	selected[report.Task]{`r.overdue_level`, func(t *report.Task) any { return &t.Overdue }},
	selected[report.Task]{`r.waiting`, func(t *report.Task) any { return &t.Waiting }},
	selected[report.Task]{`case when r.waiting then ` + openQuestionSQL + ` end`, func(t *report.Task) any { return &t.Question }},
	selected[report.Task]{`r.not_answered`, func(t *report.Task) any { return &t.Unanswered }},
	selected[report.Task]{photosSQL, func(t *report.Task) any { return &t.Photos }},
	selected[report.Task]{`(select count(*) from abuse_reports b where b.report_id = r.id and b.settled_at is null)`, func(t *report.Task) any { return &t.Abuse }},
	selected[report.Task]{`(select count(*) from comments where report_id = r.id and ` + unseenSQL + `)`, func(t *report.Task) any { return &t.Comments }},
	selected[report.Task]{`r.disputed_at is not null`, func(t *report.Task) any { return &t.Disputed }},
	selected[report.Task]{externalSQL, func(t *report.Task) any { return &t.External }})

// taskSQL selects tasks of the reports r that match the conditions. They are found and sorted
// before anything is joined to them: only the rows of one page are joined, instead of all
// that match.
func taskSQL(conditions string) string {
	return `
	select ` + worked.sql() + `
	from (select r.* from reports r` + conditions + `) r
	join categories c on c.id = r.category_id` + routesSQL + `
	left join officials o on o.id = r.assignee_id
	left join departments d on d.id = ` + chargeSQL
}

func officialID(of **report.Official) any {
	return maybe[report.Official, string]{of, func(o *report.Official) *string { return &o.ID }}
}

func officialName(of **report.Official) any {
	return maybe[report.Official, string]{of, func(o *report.Official) *string { return &o.Name }}
}

func departmentID(of **report.Department) any {
	return maybe[report.Department, int32]{of, func(d *report.Department) *int32 { return &d.ID }}
}

func departmentName(of **report.Department) any {
	return maybe[report.Department, string]{of, func(d *report.Department) *string { return &d.Name }}
}
