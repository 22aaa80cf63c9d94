alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish')) not valid;
update report_acts set action = 'assign' where action = 'forward';
alter table officials drop constraint officials_role_check;
alter table officials add constraint officials_role_check check (role in ('official', 'operator', 'auditor')) not valid;
update officials set role = 'official' where role = 'moderator';
drop trigger departments_code on departments;
drop function department_code();
alter table departments drop column code;
