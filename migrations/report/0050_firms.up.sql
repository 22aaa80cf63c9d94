-- The firms that repair for a department. Acts of one keep its name after it is deleted;
-- its address goes with the row.
create table firms (
  id uuid primary key,
  department_id integer not null references departments (id) on delete cascade,
  name text not null check (char_length(name) between 1 and 80),
  address text not null check (char_length(address) between 3 and 254), -- of mail
  unique (department_id, name)
);

-- Reports that were sent to a firm, each with a link that opens it without an account.
create table firm_jobs (
  id uuid primary key,
  report_id uuid not null references reports (id) on delete cascade,
  firm_id uuid not null references firms (id) on delete cascade,
  hash bytea not null unique, -- of the link's 130 random bits
  link text not null, -- sealed with RECIPIENT_KEY, for the reminder; empty after the end
  text text not null check (char_length(text) <= 1000), -- an official's, for the firm
  sent_at timestamptz not null,
  remind_at timestamptz, -- null once that is past
  ends_at timestamptz not null,
  ended_at timestamptz, -- also before its time: the report was closed, or is another's
  said text not null default '' check (said in ('', 'accepted', 'done', 'cannot')), -- by the firm, last
  said_text text not null default '' check (char_length(said_text) <= 500)
);
create unique index firm_jobs_open on firm_jobs (report_id) where ended_at is null;
create index firm_jobs_due on firm_jobs (coalesce(remind_at, ends_at)) where ended_at is null;
create index firm_jobs_of_report on firm_jobs (report_id, sent_at);
create index firm_jobs_of_firm on firm_jobs (firm_id);

-- Whether an official has to show it, whatever the checks find: a firm has added it.
alter table photos add column hold boolean not null default false;

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'forward', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish', 'external_ref',
    'firm', 'firm_accepted', 'firm_done', 'firm_cannot', 'firm_ended')) not valid;
