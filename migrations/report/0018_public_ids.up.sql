-- The ids of photos are the service's choice, and are UUIDs of version 8. Those of
-- earlier versions were chosen by clients, and had the time of their devices in
-- them. The photo worker replaces them, files first: the files have the ids for
-- names, and the version before finds them by these alone.
create index photos_to_rename on photos (changed_at) where substr(id::text, 15, 1) <> '8';
