-- Reports whose reporters were erased get random ones, so that nothing tells them from the
-- reports of people who never answer. Applications of Open311 have none.
insert into reporters (report_id, reporter_id)
select r.id, case when i.report_id is null then 'erased:' else 'caller:' end || gen_random_uuid()
from reports r left join counter_reports i on i.report_id = r.id
where not exists (select from reporters p where p.report_id = r.id)
  and not exists (select from open311_reports o where o.report_id = r.id);
