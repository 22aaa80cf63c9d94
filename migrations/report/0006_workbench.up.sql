-- Who in the city works on reports. Operators edit departments, and to which of
-- them the reports of a category go as long as no official has assigned them.
create table departments (
  id integer primary key,
  name text not null unique check (char_length(name) between 1 and 100)
);

alter table categories add column department_id integer references departments (id) on delete set null;

-- The officials who have worked with reports here, or were given some.
create table officials (
  id text primary key,
  name text not null
);

insert into officials (id, name) values ('erased', 'erased'); -- whoever was

alter table reports
  add column assignee_id text references officials (id),
  add column department_id integer references departments (id) on delete set null; -- null: that of the category

-- The queue and its counts. No column here changes with a vote.
create index reports_queue on reports (status, category_id, department_id, assignee_id, created_at);
create index reports_by_assignee on reports (assignee_id, created_at desc, id desc) where assignee_id is not null;
create index reports_by_department on reports (department_id) where department_id is not null;

-- What officials did to a report, besides its status, which status_history has.
-- For officials alone: no answer to a resident, no stream and no message has it.
create table report_acts (
  id bigint generated always as identity primary key,
  report_id uuid not null references reports (id) on delete cascade,
  at timestamptz not null default now(),
  official_id text not null references officials (id),
  action text not null check (action in ('assign', 'note')),
  text text not null default '', -- an internal note
  assignee_id text references officials (id),
  department_id integer references departments (id) on delete set null
);

create index report_acts_of_report on report_acts (report_id, id);
create index report_acts_age on report_acts (at);
