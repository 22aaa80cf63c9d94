drop table imported_reports;
