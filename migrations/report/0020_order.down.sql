alter table reports
  drop column status_message_id,
  drop column status_version;
