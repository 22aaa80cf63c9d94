alter table reconciliation_manifests drop column closed;
alter table known_brokers drop column lost_at;
