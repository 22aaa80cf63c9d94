package upkeep

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
)

// OwnData returns everything that is held here about a person, except copies that go by
// themselves: messages on their way and answers kept for repeated requests, within days.
// It names nobody else.
func (s *Store) OwnData(ctx context.Context, userID string) (owndata.Answer, error) {
	sections := append([]owndata.Section{
		postgres.OwnReports,
		{Name: "comments", SQL: `
			select jsonb_build_object('id', c.id, 'report_id', c.report_id, 'text', c.text, 'anonymous', c.anonymous,
			  'name', p.commenter_name, 'hidden_reason', c.hidden_reason, 'created_at', c.created_at)
			from commenters p join comments c on c.id = p.comment_id where p.commenter_id = $1 order by c.created_at`},
		{Name: "votes", SQL: `
			select jsonb_build_object('report_id', report_id, 'value', value, 'voted_at', voted_at)
			from votes where voter_id = $1 order by voted_at`},
	}, officialSections...)
	answer, err := owndata.Read(ctx, s.pool, sections, userID)
	if err != nil {
		return answer, err
	}
	if answer.Data["complaints"], err = s.ownComplaints(ctx, userID); err != nil {
		return answer, err
	}
	answer.Data["guest"], err = s.ownGuest(ctx, userID)
	return answer, err
}

// ownGuest returns what is kept of a person as a guest, and the guests whom their account
// has taken over.
func (s *Store) ownGuest(ctx context.Context, userID string) ([]json.RawMessage, error) {
	rows, err := pgpool.Collect(ctx, s.pool, "read own data as a guest", pgx.RowTo[json.RawMessage], `
		select jsonb_build_object('kind', 'guest', 'filed_at', filed, 'seen_at', seen_at) from guests where mac = any($1)
		union all
		select jsonb_build_object('kind', 'code', 'expires_at', expires_at, 'used_at', used_at) from guest_codes where guest_mac = any($1)
		union all
		select jsonb_build_object('kind', 'taken over', 'at', adopted_at, 'reports', adopted_reports) from guests where adopted_by = any($1)`,
		pseudonym.OfGuest(s.keys, userID))
	if rows == nil {
		rows = []json.RawMessage{}
	}
	return rows, err
}

// officialSections are about people who work for the city; residents have no rows in them.
var officialSections = []owndata.Section{
	{Name: "official", SQL: `select jsonb_build_object('name', name, 'role', role, 'seen_at', seen_at) from officials where id = $1`},
	{Name: "queue_views", SQL: `
		select jsonb_build_object('name', name, 'filters', filters, 'used_at', used_at) from queue_views where official_id = $1 order by position`},
	{Name: "assigned", SQL: `select jsonb_build_object('report_id', id) from reports where assignee_id = $1 order by id`},
	{Name: "changes", SQL: `
		select jsonb_build_object('report_id', report_id, 'kind', kind, 'status', to_status, 'note', note, 'changed_at', changed_at)
		from status_history where changed_by = $1 order by id`},
	{Name: "acts", SQL: `
		select jsonb_build_object('report_id', report_id, 'action', action, 'text', case when official_id = $1 then text end, 'at', at)
		from report_acts where $1 in (official_id, assignee_id) order by id`},
	{Name: "questions", SQL: `
		select jsonb_build_object('report_id', report_id, 'text', text, 'asked_at', asked_at, 'state', state)
		from questions where asked_by = $1 order by asked_at`},
	{Name: "intakes", SQL: `select jsonb_build_object('report_id', report_id, 'source', source) from counter_reports where entered_by = $1 order by report_id`},
	{Name: "bulk_moves", SQL: `
		select jsonb_build_object('at', at, 'status', status, 'note', note, 'reports', reports) from bulk_moves where official_id = $1 order by id`},
	{Name: "duplicates", SQL: `select jsonb_build_object('original', original, 'status', status, 'note', note) from duplicate_ends where closed_by = $1`},
	{Name: "settings", SQL: `
		select jsonb_build_object('at', at, 'setting', setting, 'actor_name', actor_name, 'detail', detail) from settings_audit where actor = $1
		union all
		select jsonb_build_object('at', at, 'setting', 'categories', 'actor_name', actor_name, 'added', added, 'changed', changed, 'retired', retired)
		from category_audit where actor = $1`},
	{Name: "operations", SQL: `
		select jsonb_build_object('at', at, 'action', action, 'message_id', message_id, 'reason', reason) from outbox_audit where actor = $1
		union all
		select jsonb_build_object('at', at, 'action', action, 'schedule', schedule, 'reason', reason) from schedule_audit where actor = $1
		union all
		select jsonb_build_object('at', requested_at, 'action', 'erasure') from erasures where actor = $1`},
}

// ownComplaints returns what a person complained about. Only who knows a person and the
// report can tell that a complaint is theirs, so all are compared.
func (s *Store) ownComplaints(ctx context.Context, userID string) (own []json.RawMessage, err error) {
	secrets := pseudonym.Complaints(s.keys)
	own = []json.RawMessage{}
	var report uuid.UUID
	var mac []byte
	var complaint json.RawMessage
	err = pgpool.ForEach(ctx, s.pool, "read own complaints", []any{&report, &mac, &complaint}, func() error {
		if slices.ContainsFunc(pseudonym.OfComplainant(secrets, report, userID), func(hash []byte) bool { return bytes.Equal(hash, mac) }) {
			own = append(own, slices.Clone(complaint))
		}
		return nil
	}, `
		select report_id, user_mac, jsonb_build_object('report_id', report_id, 'reason', reason, 'text', text, 'created_at', created_at)
		from abuse_reports order by created_at`)
	return own, err
}
