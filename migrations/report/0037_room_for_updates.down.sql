alter table outbox_messages reset (fillfactor);
alter table reports reset (fillfactor);
