alter table category_audit drop column actor_name;
drop table settings_audit;
alter table verdicts drop column earlier;
