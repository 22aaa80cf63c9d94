-- A report about what an earlier one is about. Its end is that of the original.
alter table reports add column duplicate_of uuid references reports (id) on delete set null;

create index reports_duplicates on reports (duplicate_of) where duplicate_of is not null;

-- Originals that were closed, and whose duplicates have yet to follow.
create table duplicate_ends (
  original uuid primary key references reports (id) on delete cascade,
  status text not null,
  note text not null,
  closed_by text not null -- the official
);

alter table report_acts add column original uuid references reports (id) on delete set null;
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate')) not valid;

-- What officials write often.
create table response_templates (
  id integer primary key,
  title text not null,
  text text not null,
  status text not null default '' -- to which it goes with; empty for any
);
