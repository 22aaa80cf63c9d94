-- Messages that a group has not found and that an operator does not wait for any longer.
alter table reconciliation_manifests add column closed uuid[] not null default '{}';
