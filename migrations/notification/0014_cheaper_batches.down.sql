alter table streams drop constraint streams_epoch_check;
alter table streams add constraint streams_epoch_check check (epoch ~ '^[A-Za-z0-9]{1,8}$');
alter table notifications add constraint notifications_stream_id_fkey foreign key (stream_id) references streams (id);
