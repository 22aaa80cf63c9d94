drop trigger notifications_deleted on notifications;
drop function note_deleted_notification();
drop table deleted_rows;
