-- Up to which number the notifications of a stream were removed. What is left
-- has no gap, and counting the unread stays a subtraction.
alter table streams add column removed_to bigint not null default 0;

-- When the reader was last here, to the day.
alter table read_marks add column seen_at timestamptz not null default now();

-- Persons who were erased, and how far that is. Nobody is named: while there is
-- work to do the id is sealed, and afterwards a hash recognises, for as long as
-- messages may be on their way, whoever was erased. The key of both is not in
-- this database.
create table erasures (
  id uuid primary key,
  actor text not null, -- the operator
  user_mac bytea unique, -- HMAC-SHA256 of the user's id; null once nothing can be on its way
  sealed text, -- the user's id; null when it is done
  requested_at timestamptz not null default now(),
  due_at timestamptz not null default now(), -- when the next piece of work may begin
  step int not null default 0, -- how many steps are done
  cursor text not null default '', -- where the next one goes on
  removed jsonb not null default '{}', -- how many rows, by step
  done_at timestamptz
);

create index erasures_latest on erasures (requested_at desc);
create index erasures_due on erasures (due_at) where done_at is null;

-- Which database this is, and how often it was restored. A service that finds
-- itself in another one than this row says runs on a copy of it.
create table database_origin (
  one boolean primary key default true check (one),
  origin text not null,
  restores int not null default 0,
  restoring boolean not null default false -- what a restore asks for is not done yet
);
