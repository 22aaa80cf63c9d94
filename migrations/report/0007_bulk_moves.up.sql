-- Which official moved many reports at once. Each move is in status_history,
-- too, and has its own event.
create table bulk_moves (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  official_id text not null references officials (id),
  status text not null,
  note text not null,
  reports uuid[] not null, -- those that were asked for
  refused uuid[] -- those of them that were not moved; null if the end is not known
);
