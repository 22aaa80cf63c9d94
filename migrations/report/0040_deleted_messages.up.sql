-- Messages whose row was deleted before it was published: no consumer gets them. No program
-- does that, so that operators are shown each.
create table deleted_rows (
  id uuid primary key,
  place text not null check (place = 'outbox'),
  routing_key text not null,
  report_id uuid not null,
  report_version bigint not null,
  deleted_at timestamptz not null default now(),
  deleted_by text not null default session_user -- the role of the database
);

create function note_deleted_messages() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into deleted_rows (id, place, routing_key, report_id, report_version)
    values (old.id, 'outbox', old.routing_key, old.report_id, old.report_version) on conflict do nothing;
  else
    insert into deleted_rows (id, place, routing_key, report_id, report_version)
    select id, 'outbox', routing_key, report_id, report_version from outbox_messages where status = 'pending' on conflict do nothing;
  end if;
  return null;
end $$;

create trigger outbox_deleted after delete on outbox_messages
  for each row when (old.status = 'pending') execute function note_deleted_messages();
create trigger outbox_truncated before truncate on outbox_messages
  for each statement execute function note_deleted_messages();
