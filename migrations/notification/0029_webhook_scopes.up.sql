-- What an endpoint is sent besides what everybody may see: 'private' are the events of
-- reports that only the city sees. It is given when the endpoint is registered, and stays:
-- what was sent, or failed, is never to be taken back.
alter table webhook_endpoints add column scopes text[] not null default '{}' check (scopes <@ '{private}');
