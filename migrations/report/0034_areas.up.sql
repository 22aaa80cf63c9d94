-- The city's own areas, such as its districts. An operator replaces the whole list; an
-- area that is left out is retired, since reports keep it. No row is ever deleted, so
-- that reports.area_id needs no foreign key, which every filing would pay for.
create table areas (
  id integer generated always as identity primary key,
  code text not null unique check (code ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$'),
  position integer not null, -- where two overlap, the first has what is in both
  names jsonb not null, -- by language
  shape jsonb not null, -- the coordinates of a MultiPolygon (RFC 7946)
  retired_at timestamptz
);

-- How often the list has been replaced, in one row: the lock on it keeps two operators
-- from doing so at once. located is the revision that all open reports have areas of.
create table area_list (
  id boolean primary key default true check (id),
  revision bigint not null default 1,
  located bigint not null default 1,
  changed_at timestamptz not null default now()
);
insert into area_list default values;

-- The departments that get the reports of an area: those of a category, before the
-- department of the category; or with category 0 those that no category sends anywhere.
create table department_routes (
  area_id integer not null references areas (id),
  category_id integer not null,
  department_id integer not null references departments (id) on delete cascade,
  primary key (area_id, category_id)
);
create index department_routes_of_department on department_routes (department_id);

alter table reports add column area_id integer not null default 0; -- 0 outside of all
create index reports_by_area on reports (area_id, created_at desc, id desc) where area_id <> 0;

-- The counts of the queue look at no row: who is in charge depends on the area, too.
create index reports_counted on reports (status, category_id, department_id, assignee_id, created_at) include (area_id, hidden_reason)
  where hidden_reason is null or visibility = 'officials' and hidden_reason = 'private';
drop index reports_shown_queue;

alter table settings_audit drop constraint settings_audit_setting_check;
alter table settings_audit add constraint settings_audit_setting_check check (setting in ('departments', 'calendar', 'areas'));
