delete from report_acts where action in ('hide_comment', 'show_comment');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse')) not valid;
alter table report_acts drop column comment_id;
drop table commenters;
drop table comments;
