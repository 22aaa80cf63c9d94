-- The tables of a group of consumers, for the database of its effects. The
-- notifications database has them by its migrations; another database takes
-- this file as one of its own, and a test compares the two.

-- The messages whose effect stands. A row is written in the transaction of
-- the effect, so that a message delivered twice has one.
create table processed_messages (
  consumer text not null,
  message_id text not null,
  processed_at timestamptz not null default now(),
  primary key (consumer, message_id)
);

create index processed_messages_age on processed_messages (processed_at);

-- Messages that were in hand when a process died: how often they were
-- started since. One without a start waits for its turn, or for something that is
-- away. A row goes when the message comes to an end.
create table message_starts (
  queue text not null,
  message_id text not null,
  starts int not null,
  started_at timestamptz not null default now(),
  primary key (queue, message_id)
);

-- What an operator set for the worker pool of a queue. Every replica reads it.
create table worker_pools (
  queue text primary key,
  concurrency int not null check (concurrency between 1 and 64), -- of each replica
  prefetch int not null check (prefetch between 1 and 1000),
  paused boolean not null default false,
  updated_at timestamptz not null default now()
);

-- A replay sends dead letters to their queue again. The row is the whole
-- state, so that another replica goes on where one died.
create table replays (
  id uuid primary key,
  created_at timestamptz not null default now(),
  selection jsonb not null, -- what was asked for
  state text not null check (state in ('running', 'paused', 'stopped', 'cancelled', 'done')),
  total int not null,
  rate_per_s int not null check (rate_per_s >= 0), -- 0 is as fast as it goes
  canary int not null check (canary >= 0), -- so many must succeed before the others go
  reason text not null default '', -- why it stopped
  ended_at timestamptz,
  owner uuid,
  lease_until timestamptz,
  take_to bigint, -- dead letters up to this are still being taken; null once all are
  reopening boolean not null default false -- it has ended, and what was not sent is being opened
);

create index replays_running on replays (created_at) where state = 'running' or reopening;

create table dead_letters (
  id bigint generated always as identity primary key,
  queue text not null, -- where it failed, and where a replay goes
  message_id text not null,
  type text not null,
  body bytea not null,
  properties jsonb not null, -- content type, application, timestamp
  headers jsonb not null, -- the recipient in them stays sealed
  error_class text not null,
  error text not null,
  error_group text not null, -- the error without what differs from message to message
  deaths int not null default 1, -- how often it came to lie here
  first_failed_at timestamptz not null,
  failed_at timestamptz not null,
  archived_at timestamptz not null default now(),
  state text not null default 'open' check (state in ('open', 'replaying', 'resolved', 'discarded')),
  closed_at timestamptz,
  close_reason text not null default '',
  parent_id bigint references dead_letters (id) on delete set null, -- the one that this is an edit of
  replay_id uuid references replays (id), -- the last replay that took it
  sent_at timestamptz -- when that replay sent it
);

-- An event has at most one dead letter that waits for someone.
create unique index dead_letters_live on dead_letters (queue, message_id) where state in ('open', 'replaying');
create index dead_letters_groups on dead_letters (queue, error_class, error_group) where state = 'open';
create index dead_letters_causes on dead_letters (queue, error_class, error_group);
create index dead_letters_replay on dead_letters (replay_id, id) where replay_id is not null;
create index dead_letters_message on dead_letters (queue, message_id, failed_at);
create index dead_letters_closed on dead_letters (closed_at) where closed_at is not null;

-- Every time that a dead letter came to lie in the archive.
create table dead_letter_attempts (
  id bigint generated always as identity primary key,
  dead_letter_id bigint not null references dead_letters (id) on delete cascade,
  failed_at timestamptz not null,
  retries int not null,
  retry_reason text not null,
  error_class text not null,
  error text not null,
  replay_id uuid -- the replay that had sent it, if any
);

create index dead_letter_attempts_of on dead_letter_attempts (dead_letter_id, id);
create index dead_letter_attempts_replay on dead_letter_attempts (replay_id) where replay_id is not null;

-- What operators note on a group of dead letters: on what failed in one queue for the
-- same reason. It goes when no letter of the group is left.
create table dead_letter_notes (
  queue text not null,
  error_class text not null,
  error_group text not null,
  text text not null,
  author text not null, -- who wrote it last
  written_at timestamptz not null default now(),
  version bigint not null generated always as identity, -- another one with each text, also after a removal
  primary key (queue, error_class, error_group)
);

-- What operators did, and why.
create table operations_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  dead_letter_id bigint,
  replay_id uuid,
  queue text,
  detail jsonb not null default '{}'
);

-- Messages that must not be handled before a time. A row is written when the
-- message is delivered, and goes once the broker has the message again, so
-- that nothing waits in the broker for longer than a retry.
create table delayed_messages (
  queue text not null, -- where it was delivered, and where it goes back to
  message_id text not null,
  type text not null,
  due_at timestamptz not null,
  body bytea not null,
  properties jsonb not null, -- content type, application, timestamp
  headers jsonb not null, -- the recipient in them stays sealed
  parked_at timestamptz not null default now(),
  owner uuid, -- who is publishing it
  lease_until timestamptz,
  primary key (queue, message_id)
) with (
  -- Each row is updated and deleted once: vacuum early and without pause, and
  -- leave room on the page for the version that the lease writes.
  fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

create index delayed_messages_due on delayed_messages (due_at);

-- The manifests of the publisher that a group of consumers has received: each names
-- messages that were published, and the group notes which of them it has.
create table reconciliation_manifests (
  consumer_group text not null,
  epoch bigint not null, -- of the publisher; numbers start over with each
  number bigint not null,
  starts_at timestamptz not null, -- when the messages were published
  ends_at timestamptz not null,
  lost_before timestamptz, -- what was published before is being published again
  received_at timestamptz not null default now(),
  body bytea, -- null once the group has everything that it names
  state text not null default 'waiting' check (state in ('waiting', 'complete', 'missing', 'unknown')),
  checks int not null default 0,
  check_at timestamptz, -- of the next check; null after the last
  expected int not null default 0,
  missing uuid[] not null default '{}', -- at the last check, without the closed ones
  closed uuid[] not null default '{}', -- which an operator does not wait for any longer
  primary key (consumer_group, epoch, number)
);

create index reconciliation_manifests_due on reconciliation_manifests (consumer_group, check_at) where check_at is not null;
create index reconciliation_manifests_age on reconciliation_manifests (received_at);

-- When a group began to compare, and began again after each restore of its database:
-- of what was published before, nobody knows here whether it was handled.
create table reconciliation_starts (
  consumer_group text not null,
  restores int not null, -- of this database
  started_at timestamptz not null default now(),
  primary key (consumer_group, restores)
);
