drop table notification_reads;
drop table notifications;
drop table streams;
drop table processed_messages;
