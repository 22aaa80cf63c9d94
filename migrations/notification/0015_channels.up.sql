-- Nothing was ever written for the channel open311, which does not exist. So no
-- row has to be looked at: only rows written from now on are checked.
alter table deliveries drop constraint deliveries_channel_check;
alter table deliveries add constraint deliveries_channel_check check (channel in ('webhook', 'email', 'push')) not valid;
