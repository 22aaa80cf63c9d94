-- The messages whose effect stands. A row is written in the transaction of
-- the effect, so that a message delivered twice has one.
create table processed_messages (
  consumer text not null,
  message_id text not null,
  processed_at timestamptz not null default now(),
  primary key (consumer, message_id)
);

create index processed_messages_age on processed_messages (processed_at);

-- One row per stream of notifications: "user:<id>" or "role:official".
-- The one table of this database that knows a user.
create table streams (
  id bigint generated always as identity primary key,
  name text not null unique,
  -- Random, so that numbers of another life are recognised. Short, because
  -- two of them with their numbers must fit an event id of 64 bytes.
  epoch text not null default left(gen_random_uuid()::text, 8) check (epoch ~ '^[A-Za-z0-9]{1,8}$'),
  last_seq bigint not null default 0
);

-- A notification's number is taken from its stream under the row's lock, in
-- the transaction that writes it: contiguous and in commit order.
create table notifications (
  stream_id bigint not null references streams (id),
  seq bigint not null,
  id uuid not null unique,
  message_id text not null,
  type text not null,
  report_id uuid not null,
  report_version bigint not null,
  data jsonb not null, -- what the reader is shown, see docs/stream.md
  created_at timestamptz not null default now(),
  primary key (stream_id, seq)
);

-- Up to where a reader, named by their own stream, has read a stream. Numbers
-- have no gaps, so that counting what is unread is a subtraction.
create table read_marks (
  reader bigint not null references streams (id),
  stream_id bigint not null references streams (id),
  seq bigint not null default 0,
  primary key (reader, stream_id)
);

-- Notifications marked one by one, which so differ from the read mark: read
-- although above it, or unread although below.
create table notification_reads (
  reader bigint not null references streams (id),
  stream_id bigint not null,
  seq bigint not null,
  read boolean not null,
  primary key (reader, stream_id, seq),
  foreign key (stream_id, seq) references notifications (stream_id, seq) on delete cascade
);
