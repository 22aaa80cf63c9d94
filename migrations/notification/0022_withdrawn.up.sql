-- Whether its reporter has withdrawn the report: earlier notifications say that, and not
-- that officials have hidden it.
alter table moderated_reports add column withdrawn boolean not null default false;
