alter table webhook_endpoints drop column disable_at;
