delete from report_acts where action in ('wait', 'no_wait', 'overdue');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate'));
delete from officials where id = 'system';
drop index reports_overdue;
alter table reports
  drop column target, drop column clock_since, drop column clock_used, drop column waiting,
  drop column due_at, drop column overdue_level, drop column overdue_next_at;
alter table categories drop column target_hours;
drop table calendar;
drop table schedule_audit;
drop table schedule_runs;
drop table schedules;
