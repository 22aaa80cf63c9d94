-- {Checked:false Mail:false Notice:false Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:false Mail:false Notice:false Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
-- $15 is push
-- $16 is anonymous
-- $17 is push_after
-- $18 is push_lifetime
-- $19 is anonymous_kinds
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, p.lane, p.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $17::interval, now() + $18::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($19::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:false Mail:true Notice:false Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
-- $15 is mail
-- $16 is anonymous
-- $17 is mail_after
-- $18 is mail_lifetime
-- $19 is anonymous_kinds
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, c.lane, c.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $17::interval, now() + $18::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($19::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:false Mail:true Notice:false Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
-- $15 is mail
-- $16 is anonymous
-- $17 is mail_after
-- $18 is mail_lifetime
-- $19 is anonymous_kinds
-- $20 is push
-- $21 is push_after
-- $22 is push_lifetime
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, c.lane, c.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $17::interval, now() + $18::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($19::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $20, p.lane, p.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $21::interval, now() + $22::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($19::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:false Mail:true Notice:true Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
-- $15 is mail
-- $16 is anonymous
-- $17 is mail_after
-- $18 is mail_lifetime
-- $19 is anonymous_kinds
-- $20 is notice_lane
-- $21 is officials
-- $22 is overdue
-- $23 is notice_after
-- $24 is officials_stream
-- $25 is report_overdue
-- $26 is overdue_level
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, c.lane, c.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $17::interval, now() + $18::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($19::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, $20, $21, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), $22,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + $23::interval, now() + $18::interval
  from drafts d join numbered n using (stream)
  where d.stream = $24 and d.type = $25 and (d.data->>'overdue_level')::int >= $26
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:false Mail:true Notice:true Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owner_hashes
-- $4 is about
-- $5 is about_versions
-- $6 is draft_messages
-- $7 is streams
-- $8 is draft_ids
-- $9 is types
-- $10 is reports
-- $11 is versions
-- $12 is data
-- $13 is withheld
-- $14 is now
-- $15 is mail
-- $16 is anonymous
-- $17 is mail_after
-- $18 is mail_lifetime
-- $19 is anonymous_kinds
-- $20 is notice_lane
-- $21 is officials
-- $22 is overdue
-- $23 is notice_after
-- $24 is officials_stream
-- $25 is report_overdue
-- $26 is overdue_level
-- $27 is push
-- $28 is push_after
-- $29 is push_lifetime
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  where not exists (select from erasures where user_mac = any($3))
    and not exists (
      select from moderated_reports where report_id = any($4) and version > any($5) for key share)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::uuid[], $11::bigint[],
      $12::jsonb[], $13::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $14, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, c.lane, c.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $17::interval, now() + $18::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($19::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, $20, $21, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), $22,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + $23::interval, now() + $18::interval
  from drafts d join numbered n using (stream)
  where d.stream = $24 and d.type = $25 and (d.data->>'overdue_level')::int >= $26
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $27, p.lane, p.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $28::interval, now() + $29::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($19::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:false Notice:false Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:false Notice:false Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
-- $16 is push
-- $17 is anonymous
-- $18 is push_after
-- $19 is push_lifetime
-- $20 is anonymous_kinds
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, p.lane, p.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($20::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:true Notice:false Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
-- $16 is mail
-- $17 is anonymous
-- $18 is mail_after
-- $19 is mail_lifetime
-- $20 is anonymous_kinds
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, c.lane, c.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($20::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:true Notice:false Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
-- $16 is mail
-- $17 is anonymous
-- $18 is mail_after
-- $19 is mail_lifetime
-- $20 is anonymous_kinds
-- $21 is push
-- $22 is push_after
-- $23 is push_lifetime
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, c.lane, c.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($20::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $21, p.lane, p.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $22::interval, now() + $23::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($20::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:true Notice:true Push:false}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
-- $16 is mail
-- $17 is anonymous
-- $18 is mail_after
-- $19 is mail_lifetime
-- $20 is anonymous_kinds
-- $21 is notice_lane
-- $22 is officials
-- $23 is overdue
-- $24 is notice_after
-- $25 is officials_stream
-- $26 is report_overdue
-- $27 is overdue_level
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, c.lane, c.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($20::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, $21, $22, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), $23,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + $24::interval, now() + $19::interval
  from drafts d join numbered n using (stream)
  where d.stream = $25 and d.type = $26 and (d.data->>'overdue_level')::int >= $27
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

-- {Checked:true Mail:true Notice:true Push:true}
-- $1 is queue
-- $2 is message_ids
-- $3 is owners
-- $4 is owner_hashes
-- $5 is about
-- $6 is about_versions
-- $7 is draft_messages
-- $8 is streams
-- $9 is draft_ids
-- $10 is types
-- $11 is reports
-- $12 is versions
-- $13 is data
-- $14 is withheld
-- $15 is now
-- $16 is mail
-- $17 is anonymous
-- $18 is mail_after
-- $19 is mail_lifetime
-- $20 is anonymous_kinds
-- $21 is notice_lane
-- $22 is officials
-- $23 is overdue
-- $24 is notice_after
-- $25 is officials_stream
-- $26 is report_overdue
-- $27 is overdue_level
-- $28 is push
-- $29 is push_after
-- $30 is push_lifetime
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
), erased as (
  select stream from unnest($3::text[], $4::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $5::uuid[], $6::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld or m.anonymous is true as withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else (
  case when m.hidden and d.type <> 'report.moderated'
    then jsonb_build_object('type', 'report.moderated', 'action', case when m.withdrawn then 'withdrawn' else 'hidden' end, 'report_id', d.report_id,
      'report_version', d.report_version, 'happened_at', d.data -> 'happened_at')
    when d.report_version = any(m.redacted_notes) then d.data - 'hidden' - 'note'
    else d.data - 'hidden'
  end || jsonb_build_object('report_title', m.title, 'words_version', m.version)
    || case when m.hidden then '{"hidden": true}'::jsonb else '{}' end
    || case when d.data ? 'private' then '{"private": true}'::jsonb else '{}' end) end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from unnest($7::text[], $8::text[], $9::uuid[], $10::text[], $11::uuid[], $12::bigint[],
      $13::jsonb[], $14::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
), numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $15, d.withheld
  from drafts d join numbered n using (stream)
), mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, c.lane, c.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = any($20::text[]))
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
), noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $16, $21, $22, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), $23,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + $24::interval, now() + $19::interval
  from drafts d join numbered n using (stream)
  where d.stream = $25 and d.type = $26 and (d.data->>'overdue_level')::int >= $27
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
), pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $28, p.lane, p.id::text, d.id::text, case when d.withheld then $17 else d.type end, ''::bytea,
    now() + $29::interval, now() + $30::interval
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = any($20::text[]) and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)

