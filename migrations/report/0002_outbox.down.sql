drop table outbox_audit;
drop table relay_members;
drop table relay_shards;
drop table outbox_messages;
