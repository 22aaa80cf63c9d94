-- What operators note on a group of dead letters: on what failed in one queue for the
-- same reason. It goes when no letter of the group is left.
create table dead_letter_notes (
  queue text not null,
  error_class text not null,
  error_group text not null,
  text text not null,
  author text not null, -- who wrote it last
  written_at timestamptz not null default now(),
  version bigint not null generated always as identity, -- another one with each text, also after a removal
  primary key (queue, error_class, error_group)
);

-- The letters of a group in any state; dead_letters_groups has only the open ones.
create index dead_letters_causes on dead_letters (queue, error_class, error_group);
