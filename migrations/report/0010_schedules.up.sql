-- When scheduled jobs are due. A row is written when a process with the job
-- first runs.
create table schedules (
  name text primary key,
  spec text not null, -- for operators
  catch_up text not null, -- likewise
  last_due timestamptz not null, -- of the last period that was begun or skipped, or when the job was new
  next_at timestamptz not null,
  paused boolean not null default false
);

-- The runs of scheduled jobs, one for each period. The row is the whole state, so
-- that another replica goes on where one died.
create table schedule_runs (
  job text not null,
  period text not null,
  due_at timestamptz not null,
  state text not null default 'running' check (state in ('running', 'done', 'failed')),
  cursor jsonb, -- where the next step goes on; it names nobody
  done bigint not null default 0,
  total bigint not null default 0, -- 0 while it is not known
  failures int not null default 0, -- of the step in hand, in a row
  error text not null default '',
  times int not null default 1, -- how often it was begun
  resume_at timestamptz not null default now(), -- when the next step may begin
  started_at timestamptz,
  ended_at timestamptz,
  owner uuid,
  lease_until timestamptz,
  primary key (job, period)
) with (
  -- Each step updates the row, and jobs of every minute write many.
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01
);

-- A job has one run at a time.
create unique index schedule_runs_running on schedule_runs (job) where state = 'running';
create index schedule_runs_latest on schedule_runs (job, due_at desc);
create index schedule_runs_ended on schedule_runs (job, ended_at) where ended_at is not null;

-- What operators did to schedules, and why.
create table schedule_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  schedule text not null,
  period text not null default '',
  reason text not null default ''
);

-- When the city works; without a row, always. Operators edit it.
create table calendar (
  one boolean primary key default true check (one),
  zone text not null, -- of the IANA database
  week jsonb not null, -- for each day from Sunday on, the shifts in minutes after midnight
  holidays date[] not null -- in their order
);

-- How long the city gives itself for a report, in hours in which it works.
alter table categories add column target_hours integer check (target_hours between 1 and 8784);

-- Until when a report is to be finished. The clock runs since clock_since, and
-- has used clock_used before; while it stands still, both tell how far it is.
alter table reports
  add column target interval not null default '0', -- 0 is none
  add column clock_since timestamptz,
  add column clock_used interval not null default '0',
  add column waiting boolean not null default false, -- the city waits for the resident
  add column due_at timestamptz,
  add column overdue_level smallint not null default 0, -- 1 when the target is over, 2 when it is over twice
  add column overdue_next_at timestamptz; -- when the next level is reached; null if none is

create index reports_overdue on reports (overdue_next_at) where overdue_next_at is not null;

insert into officials (id, name) values ('system', 'system'); -- who did what nobody did

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue')) not valid;
