-- The brokers to which messages were published, by the exchange that the relay
-- has made there. If that exchange is missing, the broker has lost what it had.
create table known_brokers (
  exchange text primary key,
  known_at timestamptz not null default now()
);
