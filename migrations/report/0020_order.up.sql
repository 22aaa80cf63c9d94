-- The message that announced the status of a report, and the version of the report
-- there: the next one names it, so that consumers handle it first. Null for a report
-- whose status is from before this migration.
alter table reports
  add column status_message_id uuid,
  add column status_version bigint;
