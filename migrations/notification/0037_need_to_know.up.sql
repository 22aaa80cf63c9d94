-- The streams of officials who work for some departments alone: each message for officials
-- asks for them.
create index streams_of_departments on streams (name) where name like 'role:official:%';
