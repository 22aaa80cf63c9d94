drop table category_audit, category_list, category_texts;
alter table categories drop column position, drop column icon, drop column accepts_reports, drop column retired_at;
-- Names may repeat among those that were retired.
update categories c set name = name || ' (' || id || ')' where exists (select from categories o where o.name = c.name and o.id < c.id);
alter table categories add constraint categories_name_key unique (name);
