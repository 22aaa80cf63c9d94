-- What waits or is held for an endpoint is moved in portions after the endpoint
-- was changed: one statement for 100,000 rows took longer than a request may.
alter table webhook_endpoints
  add column releasing boolean not null default false, -- held deliveries are being sent: new ones follow behind them
  add column held_cancelled_at timestamptz; -- deliveries held since before are cancelled
