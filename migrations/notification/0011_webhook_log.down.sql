create index deliveries_log on deliveries (channel, target, id);
drop index deliveries_webhook_log;
