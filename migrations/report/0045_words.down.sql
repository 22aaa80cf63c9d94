alter table reports drop column words_removed_at;
