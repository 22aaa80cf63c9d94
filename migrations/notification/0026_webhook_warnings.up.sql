-- From when on the next failure disables the endpoint. It is there while the endpoint has
-- failed for half of that time or longer, and operators are warned when it is written.
alter table webhook_endpoints add column disable_at timestamptz;
