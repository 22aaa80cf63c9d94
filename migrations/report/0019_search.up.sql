-- Words are found however they were typed: in letters with separate accents or with
-- composed ones (a Mac writes the former), in any width, and in any case, where "ß" is
-- "ss". What is searched for goes through the same function. ASCII has nothing of that;
-- most reports are nothing else, and cost half as much.
create function search_form(words text) returns text
  language sql immutable strict parallel safe
  return case when octet_length(words) = char_length(words) then lower(words) else translate(replace(replace(lower(normalize(words, nfkc)), 'ß', 'ss'), 'ς', 'σ'), U&'\00AD\2060\FEFF\200E\200F\202A\202B\202C\2066\2067\2068\2069', '') end;

-- The column is made again under its name, which earlier versions read.
alter table reports drop column search;
alter table reports add column search tsvector not null generated always as (
  to_tsvector('simple', translate(search_form(title || ' ' || description || ' ' || address), '/.-_@:', '      '))
) stored;
create index reports_search on reports using gin (search);
