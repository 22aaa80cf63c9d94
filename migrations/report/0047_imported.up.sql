-- Reports of the system that the city used before, by its numbers: one that is imported
-- again is known. They have no row in reporters.
create table imported_reports (
  report_id uuid primary key references reports (id) on delete cascade,
  number text not null unique check (char_length(number) between 1 and 60),
  -- The number as officials type it.
  form text not null generated always as (lower(regexp_replace(number, '[^[:alnum:]]', '', 'g'))) stored
);
create index imported_reports_form on imported_reports (form);
