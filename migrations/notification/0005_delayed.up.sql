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
