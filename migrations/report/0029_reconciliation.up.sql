-- What the relay has published, named for the groups of consumers. A row is written
-- before its message is sent, and kept so that it can be sent again; the last one says
-- where the next begins.
create table outbox_manifests (
  epoch bigint not null, -- the restores of this database until then
  number bigint not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  body bytea not null,
  sent_at timestamptz, -- null until the broker has it
  primary key (epoch, number)
);

create index outbox_manifests_unsent on outbox_manifests (epoch, number) where sent_at is null;

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
  missing uuid[] not null default '{}', -- at the last check
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

-- Operators publish again what a group has not found.
alter table outbox_audit drop constraint outbox_audit_action_check;
alter table outbox_audit add constraint outbox_audit_action_check check (action in ('retry', 'discard', 'republish')) not valid;
