-- The contacts of callers, who have no account: an official filed a report for them and
-- entered an address. The stream of such a contact is that of the report's random reporter.
create table callers (
  contact_id uuid primary key references contacts (id) on delete cascade,
  report_id uuid not null unique,
  proof_hash bytea unique, -- SHA-256 of the token in the mail that was queued last; null once it was used
  mailed_at timestamptz not null -- when that mail is due
);

-- When mails with such a link are due, for a day longer: a stranger's mailbox must not be
-- filled by typing its address.
create table caller_mails (
  id bigint generated always as identity primary key,
  stream_id bigint not null references streams (id) on delete cascade,
  address_mac bytea not null,
  due_at timestamptz not null,
  entered_at timestamptz not null default now()
);

create index caller_mails_stream on caller_mails (stream_id, entered_at);
create index caller_mails_address on caller_mails (address_mac, due_at);
create index caller_mails_age on caller_mails (due_at);
