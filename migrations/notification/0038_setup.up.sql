-- What operators have ticked in the list of what a city needs; without a row nothing.
create table setup (
  one boolean primary key default true check (one),
  done text[] not null
);
