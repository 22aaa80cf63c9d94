drop table schedule_audit;
drop table schedule_runs;
drop table schedules;
