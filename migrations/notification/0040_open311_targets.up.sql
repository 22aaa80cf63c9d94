-- The systems of departments that reports are sent to by Open311.
create table open311_targets (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 60),
  url text not null, -- without a slash at its end
  jurisdiction text not null,
  -- Sealed with the recipients' keys and the id: the target's own keys, and that of the
  -- connection by which reports are read and their numbers and statuses come back.
  api_key text not null,
  update_key text not null,
  connection_key text not null,
  services jsonb not null, -- the code of the service by the id of the category; others are not sent
  statuses jsonb not null, -- statuses of Open311 by words of the target that mean them
  repeats boolean not null, -- the target answers the same form with the number that it had before
  state text not null default 'enabled' check (state in ('enabled', 'disabled')),
  created_at timestamptz not null default now(),
  polled_at timestamptz, -- when a worker last began to read both sides
  read_to timestamptz not null default now(), -- changes of reports until then are known
  fetched_to timestamptz not null default now(), -- and the target's updates
  problem text not null default '', -- of the last time
  problem_since timestamptz,
  mailed boolean not null default false -- the operators know of the present differences
);

-- What a report is called in a target. None of its words is here. The states, by the first
-- condition that holds:
--
--   left_at               it is the department's no more, or hidden, or was closed before it was sent
--   number                the target has it
--   token                 the target will say its number
--   unknown               the target may have it: an operator decides
--   sent_at               it is being sent, or the worker died, or the answer was lost: it is searched
--   otherwise             it waits to be sent
create table open311_requests (
  target_id uuid not null references open311_targets (id) on delete cascade,
  report_id uuid not null,
  created_at timestamptz not null default now(),
  sent_at timestamptz, -- written before anything is sent
  form_hash bytea, -- of what was sent
  unknown boolean not null default false,
  token text not null default '',
  number text not null default '',
  numbered_at timestamptz,
  left_at timestamptz,
  our_status text not null,
  our_since timestamptz not null default now(),
  their_status text not null default '', -- in the target's words
  their_since timestamptz,
  agreed text[] not null default '{}', -- our statuses that agree with it
  checked_at timestamptz, -- when the target was last asked for the number
  missing_since timestamptz, -- it does not know it
  primary key (target_id, report_id)
);
create index open311_requests_number on open311_requests (target_id, number) where number <> '';
create index open311_requests_open on open311_requests (created_at) where number = '' and left_at is null;

-- The updates of targets that reports have, by the SHA-256 of their ids.
create table open311_updates (
  target_id uuid not null,
  report_id uuid not null,
  hash bytea not null,
  primary key (target_id, report_id, hash),
  foreign key (target_id, report_id) references open311_requests (target_id, report_id) on delete cascade
);

alter table deliveries drop constraint deliveries_channel_check;
alter table deliveries add constraint deliveries_channel_check check (channel in ('webhook', 'email', 'push', 'open311')) not valid;
