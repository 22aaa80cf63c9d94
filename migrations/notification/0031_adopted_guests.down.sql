drop index streams_adopted_by;
alter table streams drop constraint streams_adopted, drop column adopted_by, drop column adopted_at;
