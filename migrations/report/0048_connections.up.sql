-- Machines of departments, each with a key of 130 random bits, so that a plain hash of it is
-- enough. A revoked one stays: its acts have its name. One whose department is removed is
-- revoked with it.
create table connections (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 80),
  department_id integer references departments (id) on delete set null,
  hash bytea not null unique,
  private boolean not null,
  made_at timestamptz not null default now(),
  revoked_at timestamptz
);

-- What a report is called in the system of a connection. Officials and connections of the
-- department alone see it.
create table external_refs (
  report_id uuid primary key references reports (id) on delete cascade,
  number text not null check (char_length(number) between 1 and 60),
  -- The number as officials type it.
  form text not null generated always as (lower(regexp_replace(number, '[^[:alnum:]]', '', 'g'))) stored,
  url text not null check (char_length(url) <= 500),
  state text not null check (char_length(state) <= 60),
  connection_id uuid not null references connections (id),
  set_at timestamptz not null
);
create index external_refs_form on external_refs (form);

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'forward', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish', 'external_ref')) not valid;
