alter table relay_members drop column session_lock;
