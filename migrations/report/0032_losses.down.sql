delete from outbox_audit where action = 'close';
alter table outbox_audit drop constraint outbox_audit_action_check;
alter table outbox_audit add constraint outbox_audit_action_check check (action in ('retry', 'discard', 'republish')) not valid;
alter table reconciliation_manifests drop column closed;
alter table known_brokers drop column lost_at;
