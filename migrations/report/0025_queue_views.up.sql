-- The filters that an official has named. Few rows: at most 30 of each official.
create table queue_views (
  official_id text not null,
  position int not null,
  name text not null check (char_length(name) between 1 and 60),
  filters text not null check (char_length(filters) <= 1000), -- the query of the page's address
  used_at timestamptz not null default now(), -- last read or written, to within a day
  primary key (official_id, position),
  unique (official_id, name)
);
