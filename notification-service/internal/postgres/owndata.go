package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/owndata"
)

// ownSections are what is held here about a person, except copies that go by themselves:
// messages on their way and dead letters. Addresses are sealed, and named by OwnAddress.
var ownSections = []owndata.Section{
	{Name: "notifications", SQL: ownStream + `
		select jsonb_build_object('id', n.id, 'number', n.seq, 'type', n.type, 'report_id', n.report_id, 'data', n.data - 'asked_by',
		  'created_at', n.created_at)
		from own join notifications n on n.stream_id = own.id where not n.withheld order by n.seq`},
	{Name: "read", SQL: ownStream + `
		select jsonb_build_object('stream', s.name, 'read_to', m.seq, 'seen_at', m.seen_at, 'muted', m.muted)
		from own join read_marks m on m.reader = own.id join streams s on s.id = m.stream_id
		union all
		select jsonb_build_object('stream', s.name, 'number', r.seq, 'read', r.read)
		from own join notification_reads r on r.reader = own.id join streams s on s.id = r.stream_id`},
	{Name: "follows", SQL: ownStream + `
		select jsonb_build_object('report_id', f.report_id, 'followed_at', f.followed_at)
		from own join follows f on f.stream_id = own.id order by f.followed_at`},
	{Name: "contact", SQL: ownStream + `
		select jsonb_build_object('id', c.id, 'address', c.address, 'language', c.language, 'zone', c.zone, 'state', c.state, 'state_since', c.state_since,
		  'kinds', c.kinds, 'quiet_from', c.quiet_from, 'quiet_to', c.quiet_to, 'created_at', c.created_at,
		  'bounces', (select count(*) from mail_bounces b where b.contact_id = c.id))
		from own join contacts c on c.stream_id = own.id`},
	{Name: "codes", SQL: ownStream + `
		select jsonb_build_object('sent_at', c.sent_at) from own join contact_codes c on c.stream_id = own.id order by c.sent_at`},
	{Name: "proofs", SQL: ownStream + `
		select jsonb_build_object('due_at', c.due_at, 'entered_at', c.entered_at) from own join caller_mails c on c.stream_id = own.id order by c.due_at`},
	{Name: "digests", SQL: ownStream + `
		select jsonb_build_object('frequency', d.frequency, 'weekday', d.weekday, 'minute_of_day', d.at, 'next_at', d.next_at)
		from own join digests d on d.stream_id = own.id`},
	{Name: "mail_consents", SQL: ownStream + `
		select jsonb_build_object('report_id', c.report_id, 'created_at', c.created_at) from own join mail_consents c on c.stream_id = own.id`},
	{Name: "devices", SQL: ownStream + `
		select jsonb_build_object('id', p.id, 'push_service', p.lane, 'language', p.language, 'user_agent', p.user_agent,
		  'created_at', p.created_at, 'last_ok_at', p.last_ok_at)
		from own join push_subscriptions p on p.stream_id = own.id order by p.created_at`},
	{Name: "push_preferences", SQL: ownStream + `
		select jsonb_build_object('kinds', p.kinds) from own join push_preferences p on p.stream_id = own.id`},
	{Name: "deliveries", SQL: ownStream + `
		select jsonb_build_object('channel', d.channel, 'kind', d.kind, 'report_id', d.report_id, 'state', d.state, 'attempts', d.attempts,
		  'created_at', d.created_at, 'done_at', d.done_at)
		from own cross join lateral (
		  select 'email' as channel, id from contacts where stream_id = own.id
		  union all select 'push', id from push_subscriptions where stream_id = own.id) t
		join deliveries d on d.channel = t.channel and d.target = t.id::text order by d.id`},
	{Name: "operations", SQL: `
		select jsonb_build_object('at', at, 'action', action, 'queue', queue, 'detail', detail) from operations_audit where actor = $1
		union all
		select jsonb_build_object('at', written_at, 'action', 'note', 'queue', queue, 'text', text) from dead_letter_notes where author = $1
		union all
		select jsonb_build_object('at', requested_at, 'action', 'erasure') from erasures where actor = $1`},
}

const ownStream = `with own as (select id from streams where name = 'user:' || $1) `

// OwnData returns what is held here about a person; it names nobody else.
func OwnData(pool *pgxpool.Pool) func(ctx context.Context, userID string) (owndata.Answer, error) {
	return func(ctx context.Context, userID string) (owndata.Answer, error) {
		return owndata.Read(ctx, pool, ownSections, userID)
	}
}
