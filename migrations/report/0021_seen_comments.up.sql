-- Whether an official has seen a comment. Those that are there have been, as far as
-- anybody knows.
alter table comments add column seen boolean not null default true;
alter table comments alter column seen set default false;
create index comments_unseen on comments (report_id) where not seen and hidden_reason is null;
