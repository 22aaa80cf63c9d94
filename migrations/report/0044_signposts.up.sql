-- Where people turn instead of the city, for a category in an area: the port looks after its
-- own lamps. An area of 0 is outside of all. They are part of the list of categories, and are
-- replaced with it.
create table category_signposts (
  category_id integer not null references categories (id),
  area_id integer not null,
  texts jsonb not null, -- by language: a text, and a link that may be empty
  primary key (category_id, area_id)
);

-- Which open report another one is probably a duplicate of.
create index reports_alike on reports (category_id, latitude, longitude, created_at)
  where status in ('pending', 'in_progress') and hidden_reason is null and duplicate_of is null;
