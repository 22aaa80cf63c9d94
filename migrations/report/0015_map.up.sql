-- The map groups positions, and looks at no row for that.
create index reports_shown_position on reports (latitude, longitude) include (status, category_id) where hidden_reason is null;
drop index reports_position;
