drop index replays_running;
create index replays_running on replays (created_at) where state = 'running';
alter table replays drop column take_to, drop column reopening;
