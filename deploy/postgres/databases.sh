#!/bin/sh
# Makes the two databases, and two roles for each: cityconnect_X_owner, with
# which it is migrated, and cityconnect_X, with which the service reads and writes
# rows, and can neither change nor drop a table. Neither reaches the other
# database. For both, PostgreSQL's log is terse: it would show the row that breaks
# a constraint, and rows name people. Passwords come from the folder $SECRETS. The
# connection is psql's own, from the environment: a superuser's, or that of a role
# with CREATEDB and CREATEROLE, as managed servers give it. Such a role becomes a
# member of the four, and may not be allowed to make the log terse, which is said.
# Running it again changes nothing but passwords; a database that the service's role
# owned is given to the owner.
set -eu

# A file that is missing would take the passwords away from roles that have one.
: "${SECRETS:?must be the folder of the passwords, such as secrets/postgres}"
for role in reports reports_owner notifications notifications_owner; do
  if [ ! -s "$SECRETS/${role}_password" ]; then
    echo "databases.sh: $SECRETS/${role}_password is missing or empty; deploy/secrets.sh DIR makes it in DIR/postgres" >&2
    exit 1
  fi
done

# sql DATABASE VARIABLES… runs what it reads.
sql() {
  database=$1
  shift
  psql -v ON_ERROR_STOP=1 -q -X -d "$database" "$@"
}

make_database() {
  name=cityconnect_$1 owner=cityconnect_$1_owner
  sql postgres -v name="$name" -v owner="$owner" \
    -v password="$(cat "$SECRETS/$1_password")" -v owner_password="$(cat "$SECRETS/$1_owner_password")" <<'SQL'
select format('create role %I login', role) from (values (:'name'), (:'owner')) as wanted (role)
where not exists (select from pg_roles where rolname = role) \gexec
alter role :"name" password :'password';
alter role :"owner" password :'owner_password';
select not rolsuper as member, has_parameter_privilege('log_error_verbosity', 'set') as terse
from pg_roles where rolname = current_user \gset
\if :member
grant :"name", :"owner" to current_user;
\endif
\if :terse
alter role :"name" set log_error_verbosity = terse;
alter role :"owner" set log_error_verbosity = terse;
\else
\warn 'databases.sh: only a superuser may set log_error_verbosity for' :name 'and' :owner '; see "Personal data in logs" in docs/production.md'
\endif
select format('create database %I owner %I', :'name', :'owner')
where not exists (select from pg_database where datname = :'name') \gexec
alter database :"name" owner to :"owner";
revoke all on database :"name" from public;
grant connect on database :"name" to :"name";
SQL
  # The table of the schema's version is made here, so that the service can read
  # it and nothing else.
  sql "$name" -v name="$name" -v owner="$owner" <<'SQL'
set client_min_messages = warning;
reassign owned by :"name" to :"owner";
revoke all on schema public from public;
grant usage on schema public to :"name";
grant usage, create on schema public to :"owner";
create table if not exists schema_migrations (version bigint not null primary key, dirty boolean not null);
alter table schema_migrations owner to :"owner";
alter default privileges for role :"owner" in schema public grant select, insert, update, delete on tables to :"name";
alter default privileges for role :"owner" in schema public grant usage, select on sequences to :"name";
grant select, insert, update, delete on all tables in schema public to :"name";
grant usage, select on all sequences in schema public to :"name";
revoke insert, update, delete on schema_migrations from :"name";
SQL
}

make_database reports
make_database notifications
