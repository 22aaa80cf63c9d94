alter table known_brokers drop column lost_at;
