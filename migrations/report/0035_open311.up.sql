-- The applications of others that file reports by Open311, each with a key of its own.
-- A key is 130 random bits, so that a plain hash of it is enough. A revoked one stays:
-- the reports that came with it have it still.
create table open311_keys (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 80),
  hash bytea not null unique,
  made_at timestamptz not null default now(),
  revoked_at timestamptz
);

-- With which key a report was filed. Officials alone see the application's name.
create table open311_reports (
  report_id uuid primary key references reports (id) on delete cascade,
  key_id uuid not null references open311_keys (id)
);
create index open311_reports_by_key on open311_reports (key_id);

-- Updates of a time, for clients that ask every few minutes. A filing is not one, and so
-- does not pay for this.
create index status_history_updates on status_history (changed_at, id) where from_status is not null;

-- Settings are written by the service alone, which names them.
alter table settings_audit drop constraint settings_audit_setting_check;
