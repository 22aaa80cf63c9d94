-- What officials ask the reporter of a report. The reporter and officials alone read the
-- text: no message, export or log has it. reports.waiting is true exactly while a question
-- is open; then the clock of the report stands still. Everything that changes a question
-- locks its report first.
create table questions (
  id uuid primary key,
  report_id uuid not null references reports (id) on delete cascade,
  text text not null check (char_length(text) between 1 and 1000),
  asked_by text not null,
  asked_at timestamptz not null,
  ends_on date not null, -- the last day for an answer, in the zone of the city's calendar
  remind_at timestamptz, -- null once the reporter was reminded
  ends_at timestamptz not null, -- the end of ends_on
  state text not null default 'open' check (state in ('open', 'answered', 'withdrawn', 'expired')),
  ended_at timestamptz check ((ended_at is null) = (state = 'open'))
);

create unique index questions_open on questions (report_id) where state = 'open';
create index questions_due on questions (coalesce(remind_at, ends_at)) where state = 'open';
create index questions_of_report on questions (report_id, asked_at, id);

-- The reporter's answers. Nothing here tells who the reporter is.
create table answers (
  question_id uuid primary key references questions (id) on delete cascade,
  id uuid not null,
  text text not null check (char_length(text) between 1 and 2000),
  answered_at timestamptz not null
);

-- Its last question was not answered in time, and no official has acted on it since.
alter table reports add column not_answered boolean not null default false;

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire')) not valid;
