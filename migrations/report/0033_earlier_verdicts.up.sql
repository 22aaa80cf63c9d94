-- What a reporter had said about the same resolution before they changed it, oldest first,
-- as objects with fixed, text and given_at. It is as private as the text, and ends with it.
alter table verdicts add column earlier jsonb not null default '[]';
