delete from report_acts where action = 'external_ref';
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'forward', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish')) not valid;
drop table external_refs;
drop table connections;
