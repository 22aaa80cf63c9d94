alter table moderated_reports drop column withdrawn;
