drop table history;
