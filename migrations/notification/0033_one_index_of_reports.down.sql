create index notifications_report on notifications (report_id);
