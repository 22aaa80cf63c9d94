-- They stay hidden: an earlier version must not show them.
alter table reports drop column withdrawn_at;
