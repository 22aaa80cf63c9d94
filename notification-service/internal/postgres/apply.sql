{{- /*
What Effects.Apply executes: one transaction and one round trip. Names after @ are
parameters, numbered once at start; a batch takes the form that it needs.

Each execution takes its locks in the same order: first the message ids, sorted, then
the streams, sorted. A message that another transaction is handling makes this one
wait for the end of the other. The row of a stream stays locked until the commit, so
the numbers have no gap and no reader sees a number before the one below it.

A message to a reader who has been erased creates no notification for them. A message
about a report that officials have moderated since loses its words: the rows of
moderated_reports are read for key share, so no moderation can commit between the
reads and the writes of this statement.

Few messages are about either. The plain form writes nothing, not even that a message
is handled, if one of the batch may be. The checked form is then executed instead; it
checks each message, which takes more time: see docs/decisions.
*/ -}}
with fresh as (
  insert into processed_messages (consumer, message_id)
  select @queue, id from unnest(@message_ids::text[]) as m (id)
  {{- if not .Checked}}
  where not exists (select from erasures where user_mac = any(@owner_hashes))
    and not exists (
      select from moderated_reports where report_id = any(@about) and version > any(@about_versions) for key share)
  {{- end}}
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = @queue and message_id = any(@message_ids::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = @queue and message_id = any(@message_ids::text[]) and state in ('open', 'replaying')
)
{{- if .Checked}}, erased as (
  select stream from unnest(@owners::text[], @owner_hashes::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest(@message_ids::text[], @about::uuid[], @about_versions::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
)
{{- end}}, drafts as (
  select
    {{- if .Checked}} d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else {{.ModeratedData}} end as data,
    m.version is not null as moderated,
    {{- else}} d.*,
    {{- end}}
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest(@draft_messages::text[], @streams::text[], @draft_ids::uuid[], @types::text[], @reports::uuid[], @versions::bigint[],
      @data::jsonb[], @withheld::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  {{- if .Checked}}
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
  {{- end}}
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, @now, d.withheld
  from drafts d join numbered n using (stream)
)
{{- /*
A delivery for each notification whose reader wants mail about it; about an anonymous
report only if they agreed when they filed it. The row has neither report nor message,
and its id at the receiver is that of the notification, which only its reader knows:
nothing leads from an address to an anonymous report, nor from a webhook to a mail
about the same event.
*/ -}}
{{- if .Mail}}, mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select @mail, c.lane, c.id::text, d.id::text, case when d.withheld then @anonymous else d.type end, ''::bytea,
    now() + @mail_after::interval, now() + @mail_lifetime::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any(@anonymous_kinds::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
)
{{- end}}
{{- /*
Reports that are overdue on the highest level are added to the one notice of the hour,
which has their range of the officials' stream; the first one writes it.
*/ -}}
{{- if .Notice}}, noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select @mail, @notice_lane, @officials, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), @overdue,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + @notice_after::interval, now() + @mail_lifetime::interval
  from drafts d join numbered n using (stream)
  where d.stream = @officials_stream and d.type = @report_overdue and (d.data->>'overdue_level')::int >= @overdue_level
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
)
{{- end}}
{{- /*
A delivery for each device of a reader who wants pushes about the notification. The
rules for the rows of mails apply to these, too.
*/ -}}
{{- if .Push}}, pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select @push, p.lane, p.id::text, d.id::text, case when d.withheld then @anonymous else d.type end, ''::bytea,
    now() + @push_after::interval, now() + @push_lifetime::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any(@anonymous_kinds::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
{{- end}}
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
{{- if .Checked}}
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
{{- else}} false, null::jsonb
{{- end}}
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)
