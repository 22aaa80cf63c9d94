-- When the loss of a broker's messages was noted last. Unlike republish_before it stays:
-- republishing may be over before the next manifest is made, which says so.
alter table known_brokers add column lost_at timestamptz;
