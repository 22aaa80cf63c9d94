-- Reports that officials have hidden, or whose words they have redacted: what the
-- latest message about it says. Messages of earlier versions, which may come
-- later, have words that nobody is to see any more.
--
-- Whoever writes notifications or deliveries of events reads this table for key
-- share, and whoever moderates locks it exclusively: by then nothing that has not
-- seen the row is on its way into the database.
create table moderated_reports (
  report_id uuid primary key,
  version bigint not null, -- of the report, by the message
  hidden boolean not null,
  title text not null, -- what it is called now; of a hidden report its reference number
  redacted_notes bigint[] not null -- the versions whose notes are others now, or none
);

-- The notifications about a report.
create index notifications_report on notifications (report_id);
