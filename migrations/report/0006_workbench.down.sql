drop table report_acts;
drop index reports_by_department, reports_by_assignee, reports_queue;
alter table reports drop column department_id, drop column assignee_id;
drop table officials;
alter table categories drop column department_id;
drop table departments;
