-- notifications_message_pkey begins with the report, too.
drop index notifications_report;
