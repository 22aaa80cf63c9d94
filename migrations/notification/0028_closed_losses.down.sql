alter table reconciliation_manifests drop column closed;
