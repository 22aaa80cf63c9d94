-- Whether the reporter has hidden the name: whatever comes from before that is treated as
-- about an anonymous report.
alter table moderated_reports add column anonymous boolean not null default false;
