delete from deliveries where channel = 'open311';
delete from lanes where channel = 'open311';
alter table deliveries drop constraint deliveries_channel_check;
alter table deliveries add constraint deliveries_channel_check check (channel in ('webhook', 'email', 'push')) not valid;
drop table open311_updates;
drop table open311_requests;
drop table open311_targets;
