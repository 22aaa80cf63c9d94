-- A guest, who has no account, and whose notifications an account has taken over. The row
-- stays as long as a message to the guest may be on its way: the check refuses to
-- number a notification in it, and whoever would is led to the account's stream.
alter table streams
  add column adopted_at timestamptz,
  add column adopted_by bigint references streams (id) on delete set null, -- null once the account's stream is gone
  add constraint streams_adopted check (adopted_at is null or last_seq = 0);

create index streams_adopted_by on streams (adopted_by) where adopted_by is not null;
