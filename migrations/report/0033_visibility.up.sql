-- Who sees a report: everybody, or its reporter and officials alone. One of the latter is
-- hidden from the first moment, with the reason 'private', so that everything that holds
-- for hidden reports holds for it, and earlier versions neither show nor change it.
alter table reports
  add column visibility text not null default 'public' check (visibility in ('public', 'officials')),
  add column restricted_version bigint, -- at which version an official decided so; null if the reporter did
  add constraint reports_private_check check (visibility = 'public' or hidden_reason is not null) not valid,
  add constraint reports_restricted_check check (restricted_version is null or visibility = 'officials') not valid;

-- The queue and its counts have what only the city sees, too.
drop index reports_shown_queue;
create index reports_shown_queue on reports (status, category_id, department_id, assignee_id, created_at) include (hidden_reason)
  where hidden_reason is null or visibility = 'officials' and hidden_reason = 'private';

alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish')) not valid;
