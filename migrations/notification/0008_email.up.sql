-- Whether a mail about a notification must keep the report to itself: the
-- report is anonymous. What an older replica writes, and what is there, counts
-- as that.
alter table notifications add column withheld boolean not null default true;

-- Where a reader wants to be written to. Beside streams the one table of this
-- database that leads to a person: the address is sealed with the recipients'
-- keys and the id of the row.
create table contacts (
  id uuid primary key, -- the target of the deliveries
  stream_id bigint not null unique references streams (id) on delete cascade,
  address text not null, -- sealed
  address_mac bytea not null, -- finds it again: HMAC-SHA256 of the address in lower case
  lane text not null, -- of the address, in the ledger
  language text not null check (language in ('en', 'id')),
  zone text not null, -- such as Asia/Jakarta: where the reader's hours are
  -- Nothing but codes is sent unless the state is active:
  --
  --   unverified ──(a code is typed)──► active ──┬──► bounced      the address takes nothing
  --       ▲              ▲                       └──► complained   the reader called our mail spam
  --       │              └──────(a code is typed)────────┘
  --       └── another address
  state text not null default 'unverified' check (state in ('unverified', 'active', 'bounced', 'complained')),
  state_since timestamptz not null default now(),
  kinds text[] not null default '{}', -- of notifications that are mailed at once
  quiet_from smallint check (quiet_from between 0 and 1439), -- minutes after midnight in the zone
  quiet_to smallint check (quiet_to between 0 and 1439),
  -- The code that proves the address, as an HMAC-SHA256: a million of them are
  -- tried at once.
  code_mac bytea,
  code_until timestamptz,
  code_tries smallint not null default 0,
  created_at timestamptz not null default now(),
  check ((quiet_from is null) = (quiet_to is null)),
  check ((code_mac is null) = (code_until is null))
);

create index contacts_address on contacts (address_mac);

-- When codes were sent, for a day: a stranger's mailbox must not be filled by
-- typing its address.
create table contact_codes (
  id bigint generated always as identity primary key,
  stream_id bigint not null references streams (id) on delete cascade,
  address_mac bytea not null,
  sent_at timestamptz not null default now()
);

create index contact_codes_stream on contact_codes (stream_id, sent_at);
create index contact_codes_address on contact_codes (address_mac, sent_at);
create index contact_codes_age on contact_codes (sent_at);

-- The anonymous reports whose reporter asked, on filing them, for mail about them.
create table mail_consents (
  stream_id bigint not null references streams (id) on delete cascade,
  report_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (stream_id, report_id)
);

-- Who wants one mail a day or a week, and when the next is due. What it is about
-- is a range of the stream's numbers, which have no gaps.
create table digests (
  stream_id bigint primary key references streams (id) on delete cascade,
  frequency text not null check (frequency in ('daily', 'weekly')),
  weekday smallint not null default 1 check (weekday between 0 and 6), -- 0 is Sunday
  at smallint not null check (at between 0 and 1439), -- minutes after midnight in the contact's zone
  next_at timestamptz not null,
  sent_seq bigint not null -- up to which number digests were written
) with (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_cost_delay = 0
);

create index digests_due on digests (next_at);

-- What ends mails of a kind, without a sign-in. A token is random, is in the mails,
-- and ends with its contact.
create table unsubscribe_tokens (
  hash bytea primary key, -- SHA-256 of the token
  contact_id uuid not null references contacts (id) on delete cascade,
  kind text not null,
  token text not null, -- sealed with the contact's id
  unique (contact_id, kind)
);

-- What mail servers answered later. No text: it quotes addresses.
create table mail_bounces (
  id bigint generated always as identity primary key,
  delivery_id bigint not null,
  contact_id uuid references contacts (id) on delete set null,
  lane text not null,
  at timestamptz not null default now(),
  code text not null, -- such as 5.1.1 (RFC 3463), or complaint
  hard boolean not null, -- it will never be taken
  unique (delivery_id, code)
);

create index mail_bounces_contact on mail_bounces (contact_id, at);
create index mail_bounces_age on mail_bounces (at);
