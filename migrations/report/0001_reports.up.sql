create table categories (
  id integer primary key,
  name text not null unique,
  description text not null default ''
);

insert into categories (id, name, description) values
  (1, 'Roads and potholes', 'Holes, cracks and worn surfaces of roads and bridges'),
  (2, 'Street lights and signals', 'Lamps and traffic signals that are dark, flicker or fell over'),
  (3, 'Waste and illegal dumping', 'Missed collections and rubbish left where it does not belong'),
  (4, 'Graffiti', 'Paint and stickers on walls, signs and furniture'),
  (5, 'Parks and trees', 'Fallen branches, weeds, broken benches and playgrounds'),
  (6, 'Water and drainage', 'Leaks, blocked drains and flooding'),
  (7, 'Sidewalks', 'Broken or blocked ways for people on foot'),
  (8, 'Traffic and parking', 'Signs, sight lines, crossings and abandoned vehicles'),
  (9, 'Animals', 'Stray, dead or dangerous animals'),
  (10, 'Public safety and noise', 'Unsafe buildings, noise and other nuisances'),
  (11, 'Other', 'Whatever fits nowhere else');

-- What everyone may read of a report. Nothing here tells who filed it.
create table reports (
  id uuid primary key,
  title text not null check (char_length(title) between 1 and 200),
  description text not null check (char_length(description) <= 4000),
  category_id integer not null constraint reports_category_fk references categories (id),
  latitude double precision check (latitude between -90 and 90),
  longitude double precision check (longitude between -180 and 180),
  address text not null default '',
  privacy_level text not null check (privacy_level in ('public', 'anonymous')),
  status text not null check (status in ('pending', 'in_progress', 'resolved', 'rejected')),
  score bigint not null default 0,
  version bigint not null, -- counts every change that was announced
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The words of GET /reports?q=. Punctuation goes first, because the parser
  -- would take "north/south" or "park.lake" for one word.
  search tsvector not null generated always as (
    to_tsvector('simple', translate(title || ' ' || description || ' ' || address, '/.-_@:', '      '))
  ) stored,
  check ((latitude is null) = (longitude is null))
);

-- The keyset of GET /reports: newest first, the id breaks ties.
create index reports_newest on reports (created_at desc, id desc);
create index reports_by_status on reports (status, created_at desc, id desc);
create index reports_by_category on reports (category_id, created_at desc, id desc);
create index reports_position on reports (latitude, longitude);
create index reports_search on reports using gin (search);

-- Who filed a report: the one table of this database that knows a reporter.
create table reporters (
  report_id uuid primary key references reports (id) on delete cascade,
  reporter_id text not null,
  reporter_name text not null default ''
);

create index reporters_by_reporter on reporters (reporter_id, report_id);

create table status_history (
  id bigint generated always as identity primary key,
  report_id uuid not null references reports (id) on delete cascade,
  from_status text, -- null for the first entry
  to_status text not null,
  note text not null default '',
  changed_by text, -- the official; null for the first entry, which is the reporter's
  report_version bigint not null,
  changed_at timestamptz not null
);

create index status_history_of_report on status_history (report_id, id);

create table votes (
  report_id uuid not null references reports (id) on delete cascade,
  voter_id text not null,
  value smallint not null check (value in (-1, 1)),
  voted_at timestamptz not null,
  primary key (report_id, voter_id)
);

-- The answers of POST /reports by idempotency key. key_hash is an HMAC of the
-- user and the key of the request, so that this table names nobody. (Earlier
-- versions stored a SHA-256, and read response_status and response_headers.)
create table idempotency_keys (
  key_hash bytea primary key,
  request_hash bytea not null,
  response_status smallint not null,
  response_headers jsonb not null,
  response_body bytea not null,
  created_at timestamptz not null default now()
);

create index idempotency_keys_age on idempotency_keys (created_at);
