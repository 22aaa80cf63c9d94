-- Officials, operators and auditors as they last used the service, to the hour.
alter table officials
  add column role text check (role in ('official', 'operator', 'auditor')),
  add column seen_at timestamptz;
