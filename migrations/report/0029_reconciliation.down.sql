alter table outbox_audit drop constraint outbox_audit_action_check;
alter table outbox_audit add constraint outbox_audit_action_check check (action in ('retry', 'discard')) not valid;
drop table reconciliation_starts;
drop table reconciliation_manifests;
drop table outbox_manifests;
