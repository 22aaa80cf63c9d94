drop trigger outbox_truncated on outbox_messages;
drop trigger outbox_deleted on outbox_messages;
drop function note_deleted_messages();
drop table deleted_rows;
