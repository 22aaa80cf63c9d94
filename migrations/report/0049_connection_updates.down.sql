drop table connection_updates;
