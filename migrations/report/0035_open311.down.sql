delete from settings_audit where setting = 'open311';
alter table settings_audit add constraint settings_audit_setting_check check (setting in ('departments', 'calendar')) not valid;
drop index status_history_updates;
drop table open311_reports, open311_keys;
