-- What an operator lets an endpoint have again is moved in portions, too: a row
-- for each recovery with something left to do.
create table webhook_recoveries (
  id bigint generated always as identity primary key,
  endpoint_id uuid not null references webhook_endpoints (id) on delete cascade,
  since timestamptz not null,
  until timestamptz not null,
  asked_at timestamptz not null default now(), -- what ended later is not sent again by this
  after uuid not null -- events of notifications up to this one have deliveries
);
create index webhook_recoveries_of on webhook_recoveries (endpoint_id, id);
