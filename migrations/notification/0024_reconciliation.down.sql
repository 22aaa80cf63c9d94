drop table reconciliation_starts;
drop table reconciliation_manifests;
