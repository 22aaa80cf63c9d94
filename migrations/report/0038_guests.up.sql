-- People who report without an account. mac is an HMAC of a guest's id, so that this table
-- names nobody, and does not tell which reporters are guests to those who read it alone.
create table guests (
  mac bytea primary key,
  filed timestamptz[] not null default '{}', -- when the guest filed within the last 24 hours
  seen_at timestamptz not null default now(),
  adopted_at timestamptz, -- since when an account has the guest's reports
  adopted_by bytea, -- an HMAC of the account's id; null once the account is erased
  adopted_reports bigint not null default 0
);

create index guests_age on guests (seen_at);

-- Codes that open a guest's session on another device. mac is an HMAC of the code.
create table guest_codes (
  mac bytea primary key,
  guest_mac bytea not null,
  id uuid not null, -- for which sealed was sealed
  sealed text not null, -- the guest's id
  expires_at timestamptz not null,
  used_at timestamptz
);

create index guest_codes_guest on guest_codes (guest_mac);
create index guest_codes_age on guest_codes (expires_at);

-- Whether there are new guests now; without a row there are.
create table guest_switch (
  one boolean primary key default true check (one),
  open boolean not null,
  reason text not null,
  changed_at timestamptz not null
);
