create index reports_position on reports (latitude, longitude);
drop index reports_shown_position;
