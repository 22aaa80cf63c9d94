drop table abuse_reports;
delete from report_acts where action in ('hide', 'unhide', 'redact', 'dismiss_abuse');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo')) not valid;
alter table status_history drop column redacted_at;
create index reports_queue on reports (status, category_id, department_id, assignee_id, created_at);
drop index reports_hidden;
drop index reports_shown_queue;
alter table reports drop column hidden_reason;
