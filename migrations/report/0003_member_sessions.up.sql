-- A member of the relay holds the advisory lock with this number in its session
-- with the database. The lock is free as soon as the process is gone: then the
-- others need not wait for the end of its leases. Null if the member does not
-- hold one, behind a pooler for instance.
alter table relay_members add column session_lock bigint;
