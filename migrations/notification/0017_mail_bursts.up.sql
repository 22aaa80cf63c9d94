-- Many addresses that are refused within an hour are the sender's fault: what was
-- noted of them then counts for nothing.
alter table mail_bounces add column ours boolean not null default false;
create index mail_bounces_hard on mail_bounces (at) where hard;
