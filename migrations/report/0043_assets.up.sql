-- Things of the city that people report: lamps, bins, signals. An operator replaces those of
-- a layer as a whole. One that is left out is retired, since reports keep it: no row is ever
-- deleted, so that reports.asset_id needs no foreign key, which every filing would pay for.
create table asset_layers (
  layer text primary key check (layer ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
  category_id integer not null references categories (id), -- of most reports on its things
  changed_at timestamptz not null default now()
);
create table assets (
  id integer generated always as identity primary key,
  layer text not null,
  code text not null check (code ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$'),
  name text not null, -- may be empty
  latitude double precision not null,
  longitude double precision not null,
  retired_at timestamptz,
  unique (layer, code)
);
create index assets_by_place on assets using gist (point(longitude, latitude)) where retired_at is null;

alter table reports add column asset_id integer not null default 0; -- 0 for none
create index reports_by_asset on reports (asset_id, created_at, id) where asset_id <> 0;
