-- Nothing was ever written for the channel open311, which does not exist. So there
-- is no row to look at: only what is written from now on is checked.
alter table deliveries drop constraint deliveries_channel_check;
alter table deliveries add constraint deliveries_channel_check check (channel in ('webhook', 'email', 'push')) not valid;
