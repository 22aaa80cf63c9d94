-- Rows are written in the transaction of the change that they announce,
-- after the lock on the report's row: seq is in commit order within a report.
create table outbox_messages (
  id uuid primary key,
  routing_key varchar(255) not null,
  payload jsonb not null,
  created_at timestamptz not null default now(),
  published_at timestamptz,
  retry_count int not null default 0,
  last_error text,
  status text not null default 'pending' check (status in ('pending', 'published', 'failed')),
  seq bigint generated always as identity,
  report_id uuid not null,
  report_version bigint not null,
  shard smallint not null check (shard between 0 and 15), -- a stable hash of report_id
  headers jsonb not null default '{}',
  next_attempt_at timestamptz
) with (
  -- Every row is updated once and deleted once: vacuum early and without pause.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

create index outbox_pending on outbox_messages (shard, seq) where status = 'pending';
create index outbox_delayed on outbox_messages (report_id, seq) where status = 'pending' and retry_count > 0;
create index outbox_failed on outbox_messages (seq) where status = 'failed';
create index outbox_published on outbox_messages (published_at) where status = 'published';

-- Which replica of the relay publishes a shard. This row is the only truth:
-- an epoch is never used twice, and an owner whose lease ended owns nothing.
create table relay_shards (
  shard smallint primary key check (shard between 0 and 15),
  owner uuid,
  epoch bigint not null default 0,
  lease_until timestamptz
);

insert into relay_shards (shard) select generate_series(0, 15);

-- The replicas of the relay that live: the shards are shared evenly among them.
create table relay_members (
  member uuid primary key,
  seen_until timestamptz not null -- gone for the others after this
);

-- What operators did to outbox rows, and why.
create table outbox_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null check (action in ('retry', 'discard')),
  message_id uuid not null,
  routing_key varchar(255) not null,
  reason text not null default ''
);
