-- Addresses that nobody has proven are looked for every hour, and removed after a
-- week.
create index contacts_unverified on contacts (state_since) where state = 'unverified';
