drop table lanes;
drop table delivery_attempts;
drop table deliveries;
drop table webhook_endpoints;
