-- A report that was closed so long ago that its words were removed: title is its reference.
alter table moderated_reports add column words_removed boolean not null default false;
