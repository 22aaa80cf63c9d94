-- What a reporter had said about the same resolution before they changed it, oldest first,
-- as objects with fixed, text and given_at. It is as private as the text, and ends with it.
alter table verdicts add column earlier jsonb not null default '[]';

-- Who replaced a setting of the city, and what that changed, in short. Those of categories
-- are in category_audit.
create table settings_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  actor_name text not null,
  setting text not null check (setting in ('departments', 'calendar')),
  detail jsonb not null
);

alter table category_audit add column actor_name text not null default '';
