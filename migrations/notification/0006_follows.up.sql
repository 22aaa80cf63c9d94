-- Which reports of others a user follows, to be notified when their status
-- changes. A row points to the user's stream and names nobody.
create table follows (
  stream_id bigint not null references streams (id) on delete cascade,
  report_id uuid not null,
  followed_at timestamptz not null default now(),
  primary key (stream_id, report_id)
);

create index follows_report on follows (report_id);

-- Whether the reader wants to hear nothing of the stream: an official of the
-- reports that come in.
alter table read_marks add column muted boolean not null default false;
