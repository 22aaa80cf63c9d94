-- What reporters say about resolutions of their reports: a row for each resolution of
-- which the reporter is asked whether it is fixed.
create table verdicts (
  report_id uuid not null references reports (id) on delete cascade,
  version bigint not null, -- of the report, when it was resolved
  until timestamptz not null, -- the end of the time for it
  fixed boolean, -- null until the reporter has said it
  text text not null default '' check (char_length(text) <= 2000), -- for officials alone
  given_at timestamptz,
  ended_at timestamptz, -- officials have decided, or the report is no longer resolved
  primary key (report_id, version),
  check ((fixed is null) = (given_at is null))
);

create index verdicts_given on verdicts (given_at) where given_at is not null;
create index verdicts_until on verdicts (until) where given_at is null;

-- Since when a resolved report is not fixed, as a reporter says; null once officials have
-- acted, and for all others.
alter table reports add column disputed_at timestamptz;

-- One index for all that few reports have: each index is opened by every statement that
-- files a report or counts a vote.
create index reports_marked on reports (created_at, id)
  where waiting or not_answered or disputed_at is not null or withdrawn_at is not null;

-- Entries about a verdict: disputed, confirmed or kept; null for all others. Such an entry
-- leaves the status as it was.
alter table status_history add column kind text;
alter table status_history add constraint status_history_kind_check check (kind in ('disputed', 'confirmed', 'kept')) not valid;
create index status_history_verdicts on status_history (changed_at) where kind is not null;

-- Photos of the finished work, which the city adds.
alter table photos add column purpose text not null default '';
alter table photos add constraint photos_purpose_check check (purpose in ('', 'after')) not valid;
