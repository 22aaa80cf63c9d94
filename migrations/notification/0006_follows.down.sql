alter table read_marks drop column muted;
drop table follows;
