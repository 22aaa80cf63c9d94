-- When the words of a report that was closed long ago were removed; null for one that has
-- them. The index leads to those that are old enough to have been closed long ago. It is not
-- on the time of their end, since each vote writes that column.
alter table reports add column words_removed_at timestamptz;

create index reports_with_words on reports (created_at) where status in ('resolved', 'rejected') and words_removed_at is null;
