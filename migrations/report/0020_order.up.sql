-- The message that announced the status of a report, and the version of the report
-- there: the next one names it, so that consumers handle it first. Null for a report
-- whose status is from before this migration.
alter table reports
  add column status_message_id uuid,
  add column status_version bigint;

-- What was published to a broker before this time is published again, because the
-- broker has lost it. Null when there is nothing left to republish.
alter table known_brokers add column republish_before timestamptz;
