-- Null until the reader has chosen, or has proven an address for the first time: then
-- mails about new statuses are on. What was set before counts as chosen.
alter table contacts alter column kinds drop not null, alter column kinds drop default;
update contacts set kinds = null where state = 'unverified' and kinds = '{}';
