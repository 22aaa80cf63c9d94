alter table webhook_endpoints drop column releasing, drop column held_cancelled_at;
