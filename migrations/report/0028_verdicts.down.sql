alter table photos drop column purpose;
-- Earlier versions would show these entries as replies without words. What keeps a report
-- resolved is one.
delete from status_history where kind in ('disputed', 'confirmed');
alter table status_history drop column kind;
alter table reports drop column disputed_at;
drop table verdicts;
