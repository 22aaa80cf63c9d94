drop table delayed_messages;
drop table operations_audit;
drop table dead_letter_attempts;
drop table dead_letters;
drop table replays;
drop table worker_pools;
drop table message_starts;
drop table processed_messages;
delete from report_acts where action in ('add_photo', 'show_photo', 'remove_photo', 'redact_photo');
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue')) not valid;
alter table report_acts drop column photo_id;
drop table photos;
