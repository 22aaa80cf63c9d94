-- The reports that officials filed for somebody who came to the counter, called or wrote,
-- or that an inspection found. Officials alone see how a report came, and who entered it.
-- In reporters, such a report has a random id that nobody signs in with.
create table counter_reports (
  report_id uuid primary key references reports (id) on delete cascade,
  source text not null check (source in ('counter', 'telephone', 'letter', 'inspection')),
  entered_by text not null -- an official
);

create index counter_reports_by_source on counter_reports (source);
