drop table notification_reads;
drop table read_marks;
drop table notifications;
drop table streams;
drop table processed_messages;
