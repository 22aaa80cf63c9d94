-- Other systems of the city that get events. None is a person.
create table webhook_endpoints (
  id uuid primary key,
  url text not null,
  description text not null default '',
  event_types text[] not null default '{}', -- such as report.created; empty is all
  category_ids int[] not null default '{}', -- empty is all
  area double precision[] check (array_length(area, 1) = 4), -- west, south, east, north in degrees; null is everywhere
  state text not null default 'enabled' check (state in ('enabled', 'disabled')),
  state_since timestamptz not null default now(),
  state_reason text not null default '' check (state_reason in ('', 'operator', 'failing', 'gone')),
  -- What signs. Sealed with the recipients' keys and the endpoint's id.
  secret text not null,
  secret_since timestamptz not null default now(),
  previous_secret text, -- signs beside the other until its end
  previous_secret_until timestamptz,
  order_policy text not null default 'report' check (order_policy in ('report', 'none')),
  in_flight int not null default 2 check (in_flight between 1 and 16),
  held_dropped bigint not null default 0, -- events of a disabled endpoint beyond what is held for it
  version bigint not null default 1, -- for If-Match: an operator's change adds one
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((previous_secret is null) = (previous_secret_until is null))
);

-- What must reach a target outside, once for each target, message and kind.
-- Written in the transaction of the effect; docs/decisions says why it is not
-- a queue at the broker. The states:
--
--   waiting ──► done        the target has it
--      │  ▲────────────┐
--      ├──► dead ──────┤    given up; an operator may send it again
--      ├──► held ──────┘    the target is disabled; sent or cancelled when it is enabled
--      └──► cancelled       nobody wants it any more
create table deliveries (
  id bigint generated always as identity primary key,
  channel text not null check (channel in ('webhook', 'email', 'push', 'open311')),
  lane text not null, -- what has a pace of its own: an endpoint, a mail host
  target text not null, -- for webhooks: the id of the endpoint, as the lane
  message_id text not null, -- of the event; the receiver knows a repetition by it
  kind text not null, -- for webhooks: the type of the event
  report_id uuid,
  report_version bigint not null default 0,
  body bytea not null, -- the bytes that are sent, and signed; no person in them
  state text not null default 'waiting' check (state in ('waiting', 'held', 'done', 'dead', 'cancelled')),
  due_at timestamptz not null default now(),
  not_after timestamptz not null default now() + interval '7 days', -- then it is dead
  attempts int not null default 0, -- how often it was sent
  retries int not null default 0, -- how far it is in the schedule; some attempts do not count there
  last_class text not null default '',
  last_status int, -- of HTTP
  last_error text not null default '',
  created_at timestamptz not null default now(),
  done_at timestamptz, -- when it was done, dead or cancelled
  unique (channel, target, message_id, kind)
) with (
  -- Every row is updated at least once and deleted once: vacuum early and without pause.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

create index deliveries_due on deliveries (channel, lane, due_at, id) where state = 'waiting';
create index deliveries_order on deliveries (report_id, channel, lane, report_version) where state = 'waiting' and report_id is not null;
create index deliveries_held on deliveries (channel, target, id) where state = 'held';
create index deliveries_ended on deliveries (channel, target, id) where state in ('dead', 'cancelled');
create index deliveries_log on deliveries (channel, target, id);

-- Each time that a delivery was sent. There is no foreign key, which would
-- read the delivery once more for each row: both go in one statement.
create table delivery_attempts (
  delivery_id bigint not null,
  n int not null, -- 1 is the first
  at timestamptz not null,
  duration_ms int not null,
  status int, -- of HTTP; null when there was no answer
  class text not null,
  error text not null default '',
  response text not null default '', -- the first KiB of the answer
  primary key (delivery_id, n)
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

-- Which worker sends the deliveries of a lane, and how the lane is. Only the
-- owner of the lease writes here; the row is made when a worker first sees
-- the lane.
create table lanes (
  channel text not null,
  lane text not null,
  owner uuid,
  lease_until timestamptz,
  rate double precision, -- deliveries a second that it may have; null is any
  failures int not null default 0, -- in a row
  failing_since timestamptz, -- the first of them
  open_until timestamptz, -- its circuit is open: until then nothing is sent
  last_success_at timestamptz,
  last_failure_at timestamptz,
  primary key (channel, lane)
) with (fillfactor = 50);
