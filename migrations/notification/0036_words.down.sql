alter table moderated_reports drop column words_removed;
