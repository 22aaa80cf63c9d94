-- What an official's correction of a report has changed, each as {"from", "to"}; null for
-- all other entries. Such an entry leaves the status as it was.
alter table status_history add column correction jsonb;
