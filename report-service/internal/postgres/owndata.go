package postgres

import "github.com/cityconnect/cityconnect/platform/owndata"

// OwnReports are the reports of a person in their own data, with what was said and done
// about each.
var OwnReports = owndata.Section{Name: "reports", SQL: `
	select jsonb_build_object(
	  ` + ownSQL + `, 'reporter_name', p.reporter_name, 'name_hidden', exists (select from hidden_names n where n.report_id = r.id),
	  'history', (
	    select coalesce(jsonb_agg(jsonb_build_object('kind', h.kind, 'status', h.to_status, 'correction', h.correction, 'changed_at', h.changed_at,
	      'note', h.note) order by h.id), '[]')
	    from status_history h where h.report_id = r.id),
	  'photos', (
	    select coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'state', f.state, 'alt', f.alt, 'width', f.width, 'height', f.height,
	      'created_at', f.created_at) order by f.created_at), '[]')
	    from photos f where f.report_id = r.id and not f.official),
	  'questions', (
	    select coalesce(jsonb_agg(jsonb_build_object('text', q.text, 'asked_at', q.asked_at, 'state', q.state, 'answer', a.text,
	      'answered_at', a.answered_at) order by q.asked_at), '[]')
	    from questions q left join answers a on a.question_id = q.id where q.report_id = r.id),
	  'verdicts', (
	    select coalesce(jsonb_agg(jsonb_build_object('fixed', v.fixed, 'text', v.text, 'given_at', v.given_at, 'earlier', v.earlier)), '[]')
	    from verdicts v where v.report_id = r.id))
	from reporters p join reports r on r.id = p.report_id join categories c on c.id = r.category_id
	where p.reporter_id = $1 order by r.created_at`}
