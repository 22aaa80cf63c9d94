-- The updates that a connection has sent by Open311, so that none is taken twice for as long
-- as the report exists. An id is the other system's, and may name somebody: its SHA-256 is
-- enough.
create table connection_updates (
  report_id uuid not null references reports (id) on delete cascade,
  connection_id uuid not null references connections (id),
  update_hash bytea not null,
  report_version bigint not null, -- of the entry in the history; 0 if there was nothing to do
  primary key (report_id, connection_id, update_hash)
);
