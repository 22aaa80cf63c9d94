-- Notifications that were deleted from a stream which still counts them. Retention notes
-- up to where it has removed a stream, erasure removes the stream, and an adoption moves it:
-- so each is judged when its transaction ends. The id is known to the reader alone, and
-- nothing else of the notification is kept.
create table deleted_rows (
  id uuid primary key,
  place text not null check (place = 'streams'),
  routing_key text not null default '',
  report_id uuid,
  report_version bigint not null default 0,
  stream_id bigint not null references streams (id) on delete cascade,
  deleted_at timestamptz not null default now(),
  deleted_by text not null default session_user -- the role of the database
);

create index deleted_rows_of_stream on deleted_rows (stream_id);

create function note_deleted_notification() returns trigger language plpgsql as $$
begin
  insert into deleted_rows (id, place, stream_id)
  select old.id, 'streams', s.id from streams s
  where s.id = old.stream_id and old.seq > s.removed_to and old.seq <= s.last_seq
    and not exists (select from notifications n where n.stream_id = s.id and n.seq = old.seq)
  on conflict do nothing;
  return null;
end $$;

create constraint trigger notifications_deleted after delete on notifications
  deferrable initially deferred for each row execute function note_deleted_notification();
