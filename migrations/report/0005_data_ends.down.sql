drop index status_history_age;
drop table database_origin;
drop table erasures;
