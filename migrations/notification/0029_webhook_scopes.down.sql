alter table webhook_endpoints drop column scopes;
