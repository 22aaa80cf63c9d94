drop table response_templates;
delete from report_acts where action in ('duplicate', 'no_duplicate');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check check (action in ('assign', 'note'));
alter table report_acts drop column original;
drop table duplicate_ends;
alter table reports drop column duplicate_of;
