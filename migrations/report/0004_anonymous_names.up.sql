-- The name of an anonymous reporter is shown to nobody. It is no longer stored;
-- here go those that were.
update reporters set reporter_name = ''
where reporter_name <> ''
  and report_id in (select id from reports where privacy_level = 'anonymous');
