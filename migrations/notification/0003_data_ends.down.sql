drop table database_origin;
drop table erasures;
alter table read_marks drop column seen_at;
alter table streams drop column removed_to;
