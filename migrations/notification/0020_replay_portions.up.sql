-- A replay takes its dead letters, and gives back what it did not send, in portions: one
-- statement for 100,000 took longer than a request may.
alter table replays
  add column take_to bigint, -- dead letters up to this are still being taken; null once all are
  add column reopening boolean not null default false; -- it has ended, and what was not sent is being opened
drop index replays_running;
create index replays_running on replays (created_at) where state = 'running' or reopening;
