drop table reconciliation_starts;
drop table reconciliation_manifests;
drop table outbox_manifests;
