drop table setup;
