drop table idempotency_keys;
drop table votes;
drop table status_history;
drop table reporters;
drop table reports;
drop table categories;
