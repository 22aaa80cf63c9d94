-- When its reporter has withdrawn a report; null for all others. It is hidden with it, so
-- that everything that holds for hidden reports holds for it.
alter table reports add column withdrawn_at timestamptz check (withdrawn_at is null or hidden_reason is not null);
