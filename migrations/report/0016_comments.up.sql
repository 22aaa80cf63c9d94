-- What residents say about reports. Nothing here tells who wrote it.
create table comments (
  id uuid primary key,
  report_id uuid not null references reports (id) on delete cascade,
  text text not null check (char_length(text) between 1 and 1000),
  anonymous boolean not null, -- nobody is shown who wrote it
  hidden_reason text check (char_length(hidden_reason) between 1 and 500), -- null for one that everybody sees
  created_at timestamptz not null
);

create index comments_of_report on comments (report_id, created_at, id);

-- Who wrote a comment: what reporters is to reports.
create table commenters (
  comment_id uuid primary key references comments (id) on delete cascade,
  commenter_id text not null,
  commenter_name text not null default '' -- empty for an anonymous comment
);

create index commenters_by_commenter on commenters (commenter_id, comment_id);

alter table report_acts add column comment_id uuid;
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment')) not valid;
