update contacts set kinds = '{}' where kinds is null;
alter table contacts alter column kinds set default '{}', alter column kinds set not null;
