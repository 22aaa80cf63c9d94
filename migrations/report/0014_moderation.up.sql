-- Why officials have hidden a report; null for one that everybody sees. Its
-- reporter can read it.
alter table reports add column hidden_reason text check (char_length(hidden_reason) between 1 and 500);

-- The queue and its counts are of what everybody sees, unless an official asks
-- for what is hidden.
create index reports_shown_queue on reports (status, category_id, department_id, assignee_id, created_at) where hidden_reason is null;
drop index reports_queue;
create index reports_hidden on reports (created_at desc, id desc) where hidden_reason is not null;

-- Since when a note is not the one that was published with the entry. What was
-- announced with the entry's version has the note still.
alter table status_history add column redacted_at timestamptz;

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse')) not valid;

-- What residents say is wrong with reports, once per person and report. user_mac
-- is an HMAC of the person and the report: it knows a repetition, names nobody,
-- and two of one person have nothing in common.
create table abuse_reports (
  report_id uuid not null references reports (id) on delete cascade,
  user_mac bytea not null,
  reason text not null check (reason in ('personal_data', 'offensive', 'spam', 'other')),
  text text not null default '' check (char_length(text) <= 500),
  created_at timestamptz not null default now(),
  settled_at timestamptz, -- when an official hid the report, or found nothing wrong
  primary key (report_id, user_mac)
);

create index abuse_reports_open on abuse_reports (report_id, created_at) where settled_at is null;
create index abuse_reports_settled on abuse_reports (settled_at) where settled_at is not null;
