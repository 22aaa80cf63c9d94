-- How the city looks and writes: without a row as the services come.
create table appearance (
  one boolean primary key default true check (one),
  revision bigint not null,
  colour text not null check (colour ~ '^(#[0-9a-f]{6})?$'),
  words jsonb not null -- by language: greeting and signature of mails
);
