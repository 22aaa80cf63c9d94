delete from settings_audit where setting = 'areas';
alter table settings_audit drop constraint settings_audit_setting_check;
alter table settings_audit add constraint settings_audit_setting_check check (setting in ('departments', 'calendar'));
create index reports_shown_queue on reports (status, category_id, department_id, assignee_id, created_at) include (hidden_reason)
  where hidden_reason is null or visibility = 'officials' and hidden_reason = 'private';
drop index reports_counted;
drop index reports_by_area;
alter table reports drop column area_id;
drop table department_routes;
drop table area_list;
drop table areas;
