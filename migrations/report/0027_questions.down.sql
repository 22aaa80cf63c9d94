-- An earlier version lets a report wait without a question, and an official ends that.
delete from report_acts where action in ('ask', 'withdraw_question', 'expire');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment')) not valid;
alter table reports drop column not_answered;
drop table answers;
drop table questions;
