create index photos_to_rename on photos (changed_at) where substr(id::text, 15, 1) <> '8';
