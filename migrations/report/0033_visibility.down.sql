-- Reports that only the city sees stay hidden: an earlier version must not show them.
delete from report_acts where action in ('restrict', 'publish');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire')) not valid;
drop index reports_shown_queue;
create index reports_shown_queue on reports (status, category_id, department_id, assignee_id, created_at) where hidden_reason is null;
alter table reports drop column visibility, drop column restricted_version;
