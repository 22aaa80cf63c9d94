drop index comments_unseen;
alter table comments drop column seen;
