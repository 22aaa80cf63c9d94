drop table counter_reports;
