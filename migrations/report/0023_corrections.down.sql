drop table hidden_names;

-- Earlier versions would show a correction as a reply.
delete from status_history where correction is not null;
alter table status_history drop column correction;
