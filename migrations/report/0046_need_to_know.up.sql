-- What identity providers call a department by. One that is stored without a code, as by a
-- replica of the version before, gets one made of its name.
alter table departments add column code text;

create function department_code() returns trigger language plpgsql as $$
begin
  if new.code is null then
    new.code := coalesce(nullif(left(trim(both '-' from regexp_replace(lower(new.name), '[^a-z0-9]+', '-', 'g')), 30), ''), 'department');
    if exists (select from departments where code = new.code and id <> new.id) then
      new.code := new.code || '-' || new.id;
    end if;
  end if;
  return new;
end
$$;

create trigger departments_code before insert or update on departments for each row execute function department_code();
update departments set code = null where code is null;
alter table departments
  alter column code set not null,
  add constraint departments_code_key unique (code),
  add constraint departments_code_check check (code ~ '^[a-z0-9][a-z0-9_-]{0,39}$');

-- Officials of the whole city, and reports that are forwarded to another department.
alter table officials drop constraint officials_role_check;
alter table officials add constraint officials_role_check check (role in ('official', 'moderator', 'operator', 'auditor')) not valid;
alter table report_acts drop constraint report_acts_action_check;
alter table report_acts add constraint report_acts_action_check
  check (action in ('assign', 'forward', 'note', 'duplicate', 'no_duplicate', 'wait', 'no_wait', 'overdue', 'add_photo', 'show_photo', 'remove_photo', 'redact_photo',
    'hide', 'unhide', 'redact', 'dismiss_abuse', 'hide_comment', 'show_comment', 'ask', 'withdraw_question', 'expire', 'restrict', 'publish')) not valid;
