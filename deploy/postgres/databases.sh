#!/bin/sh
# Makes the two databases, each owned by a role that cannot connect to the
# other's. Passwords come from the folder $SECRETS. The connection is psql's
# own, from the environment. Running it again changes nothing but passwords.
set -eu

make_database() {
  psql -v ON_ERROR_STOP=1 -q -X -d postgres \
    -v name="cityconnect_$1" -v password="$(cat "$SECRETS/$1_password")" <<'SQL'
select format('create role %I login', :'name')
where not exists (select from pg_roles where rolname = :'name') \gexec
alter role :"name" password :'password';
select format('create database %I owner %I', :'name', :'name')
where not exists (select from pg_database where datname = :'name') \gexec
revoke connect on database :"name" from public;
SQL
}

make_database reports
make_database notifications
