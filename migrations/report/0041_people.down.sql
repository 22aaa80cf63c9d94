alter table officials drop column role, drop column seen_at;
