-- The trace of the request that caused a webhook, of which receivers get to know: 16
-- bytes. Mails and pushes have none.
alter table deliveries add column trace_id uuid;
