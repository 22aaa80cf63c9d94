drop index notifications_report;
drop table moderated_reports;
