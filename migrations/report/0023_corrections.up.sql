-- What an official's correction of a report has changed, each as {"from", "to"}; null for
-- all other entries. Such an entry leaves the status as it was.
alter table status_history add column correction jsonb;

-- Reports whose reporter has hidden the name, while published messages of the outbox may
-- still have it. A job takes it out of them.
create table hidden_names (
  report_id uuid primary key references reports (id) on delete cascade
);
