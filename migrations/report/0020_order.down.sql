alter table reports
  drop column status_message_id,
  drop column status_version;

alter table known_brokers drop column republish_before;
