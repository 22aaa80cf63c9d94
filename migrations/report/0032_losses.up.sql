-- When the loss of a broker's messages was noted last. Unlike republish_before it stays:
-- republishing may be over before the next manifest is made, which says so.
alter table known_brokers add column lost_at timestamptz;

-- Messages that a group has not found and that an operator does not wait for any longer.
alter table reconciliation_manifests add column closed uuid[] not null default '{}';
alter table outbox_audit drop constraint outbox_audit_action_check;
alter table outbox_audit add constraint outbox_audit_action_check check (action in ('retry', 'discard', 'republish', 'close')) not valid;
