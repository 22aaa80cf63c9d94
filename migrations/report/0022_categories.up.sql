-- The city's own categories, in the languages of its residents. An operator replaces
-- the whole list; a category that is left out is retired, since reports keep it.
-- categories.name is the name in the city's first language, which messages carry.
alter table categories drop constraint categories_name_key;
alter table categories
  add column position integer not null default 0,
  add column icon text not null default '' check (icon ~ '^[a-z0-9-]{0,40}$'),
  add column accepts_reports boolean not null default true,
  add column retired_at timestamptz;

create table category_texts (
  category_id integer not null references categories (id),
  language text not null check (language ~ '^[a-z]{2,3}$'),
  name text not null check (char_length(name) between 1 and 80),
  hint text not null default '' check (char_length(hint) <= 500),
  group_name text not null default '' check (char_length(group_name) <= 80),
  primary key (category_id, language)
);

-- How often the list has been replaced, in one row: the lock on it keeps two
-- operators from doing so at once.
create table category_list (
  id boolean primary key default true check (id),
  revision bigint not null default 1
);
insert into category_list default values;

-- Who replaced the list, and what that changed.
create table category_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  added integer not null,
  changed integer not null,
  retired integer not null,
  moved boolean not null
);

-- The list to begin with; a city replaces it. Earlier versions read description.
update categories set position = id;
insert into category_texts (category_id, language, name, hint)
select id, 'en', name, description from categories where char_length(name) between 1 and 80 and char_length(description) <= 500;

insert into category_texts (category_id, language, name, hint)
select id, 'id', w.name, w.hint
from categories c
join (values
  ('Roads and potholes', 'Jalan dan lubang', 'Lubang, retakan, dan permukaan jalan atau jembatan yang rusak'),
  ('Street lights and signals', 'Lampu jalan dan lampu lalu lintas', 'Lampu jalan atau lampu lalu lintas yang mati, berkedip, atau roboh'),
  ('Waste and illegal dumping', 'Sampah dan pembuangan liar', 'Sampah yang tidak diangkut atau dibuang sembarangan'),
  ('Graffiti', 'Grafiti', 'Coretan dan stiker di dinding, rambu, dan fasilitas umum'),
  ('Parks and trees', 'Taman dan pohon', 'Dahan patah, rumput liar, bangku atau tempat bermain yang rusak'),
  ('Water and drainage', 'Air dan saluran', 'Kebocoran, saluran tersumbat, dan banjir'),
  ('Sidewalks', 'Trotoar', 'Trotoar yang rusak atau terhalang'),
  ('Traffic and parking', 'Lalu lintas dan parkir', 'Rambu, penyeberangan, jarak pandang, dan kendaraan yang ditinggalkan'),
  ('Animals', 'Hewan', 'Hewan liar, mati, atau berbahaya'),
  ('Public safety and noise', 'Keamanan umum dan kebisingan', 'Bangunan tidak aman, kebisingan, dan gangguan lain'),
  ('Other', 'Lainnya', 'Hal lain yang tidak termasuk di atas')
) w (known_as, name, hint) on w.known_as = c.name;

update categories c set icon = w.icon
from (values ('Roads and potholes', 'road'), ('Street lights and signals', 'lamp'), ('Waste and illegal dumping', 'bin'), ('Graffiti', 'spray'),
  ('Parks and trees', 'tree'), ('Water and drainage', 'drop'), ('Sidewalks', 'walk'), ('Traffic and parking', 'car'), ('Animals', 'paw'),
  ('Public safety and noise', 'noise'), ('Other', 'dots')) w (known_as, icon)
where w.known_as = c.name;
