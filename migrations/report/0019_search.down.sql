alter table reports drop column search;
alter table reports add column search tsvector not null generated always as (
  to_tsvector('simple', translate(title || ' ' || description || ' ' || address, '/.-_@:', '      '))
) stored;
create index reports_search on reports using gin (search);
drop function search_form(text);
