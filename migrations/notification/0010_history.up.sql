-- What each replica counted, every ten seconds, for the operators' charts. Rows
-- go after six hours. They name nobody.
create table history (
  replica uuid not null,
  since timestamptz not null, -- the row is about the time from here
  until timestamptz not null, -- to here
  figures jsonb not null,
  primary key (until, replica)
) with (
  -- As many rows go as come.
  autovacuum_vacuum_scale_factor = 0.1
);
