drop table appearance;
