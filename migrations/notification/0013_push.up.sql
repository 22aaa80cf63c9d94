-- The browsers that notifications are pushed to. With contacts and streams the
-- tables of this database that lead to a person: the address, which the browser's
-- vendor can tell whose it is, is sealed with the recipients' keys and the id of
-- the row. A browser is one person's: who registered it last.
create table push_subscriptions (
  id uuid primary key, -- the target of its deliveries
  stream_id bigint not null references streams (id) on delete cascade,
  endpoint text not null, -- the address, sealed
  endpoint_mac bytea not null unique, -- finds it again: HMAC-SHA256 of the address
  keys text not null, -- what encrypts for it, sealed
  lane text not null, -- the host of the address
  language text not null check (language in ('en', 'id')),
  user_agent text not null, -- such as "Firefox, Android": what its owner knows it by
  created_at timestamptz not null default now(),
  last_ok_at timestamptz -- when the push service took something for it, to the hour
);

create index push_subscriptions_stream on push_subscriptions (stream_id);
create index push_subscriptions_age on push_subscriptions (coalesce(last_ok_at, created_at));

-- The kinds that are pushed to a reader's browsers, since the reader registered one.
create table push_preferences (
  stream_id bigint primary key references streams (id) on delete cascade,
  kinds text[] not null -- of notifications
);
