#!/bin/sh
# Makes the stack's passwords, keys and database addresses, one folder for each
# part that reads them, so that no part sees another's:
#
#   secrets.sh DIR     (needs POSTGRES_ADDRESS, RABBITMQ_ADDRESS and
#                       RABBITMQ_MANAGEMENT_ADDRESS, each host:port)
#
# What is there stays; what the environment gives is taken instead of a random
# value. Nothing is printed.
set -eu
dir=$1
umask "${SECRETS_UMASK:-077}"
mkdir -p "$dir/postgres" "$dir/rabbitmq" "$dir/report" "$dir/notification"

random() { head -c "$1" /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# keep FILE GIVEN OTHERWISE
keep() {
  if [ -n "$2" ]; then
    printf %s "$2" >"$dir/$1"
  elif [ ! -s "$dir/$1" ]; then
    printf %s "$3" >"$dir/$1"
  fi
}

# both FILE GIVEN OTHERWISE: what the two services must agree on
both() {
  keep "report/$1" "$2" "$3"
  cp "$dir/report/$1" "$dir/notification/$1"
}

read_secret() { cat "$dir/$1"; }

keep postgres/superuser_password "${POSTGRES_PASSWORD-}" "$(random 24)"
keep postgres/reports_password '' "$(random 24)"
keep postgres/notifications_password '' "$(random 24)"
keep rabbitmq/password "${RABBITMQ_PASSWORD-}" "$(random 24)"
# The log of the quorum queues is in memory until a file of it is full: with the
# image's 512 MB, the broker's memory rises for minutes and falls at once.
cat >"$dir/rabbitmq/20-user.conf" <<CONF
default_user = cityconnect
default_pass = $(read_secret rabbitmq/password)
loopback_users = none
log.console = true
raft.wal_max_size_bytes = 67108864
CONF

# Addresses are written anew each time: the native stack's ports may change.
database_url() {
  printf 'postgres://cityconnect_%s:%s@%s/cityconnect_%s?sslmode=disable' \
    "$1" "$(read_secret "postgres/$1_password")" "$POSTGRES_ADDRESS" "$1"
}
printf %s "${REPORT_DATABASE_URL:-$(database_url reports)}" >"$dir/report/database_url"
printf %s "${NOTIFICATION_DATABASE_URL:-$(database_url notifications)}" >"$dir/notification/database_url"

broker_user="cityconnect:$(read_secret rabbitmq/password)"
rm -f "$dir/report/rabbitmq_url" "$dir/report/rabbitmq_management_url"
both rabbitmq_url "${RABBITMQ_URL-}" "amqp://$broker_user@$RABBITMQ_ADDRESS/"
both rabbitmq_management_url "${RABBITMQ_MANAGEMENT_URL-}" "http://$broker_user@$RABBITMQ_MANAGEMENT_ADDRESS"

both recipient_key "${RECIPIENT_KEY-}" "k1:$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
both auth_jwt_secret "${AUTH_JWT_SECRET-}" "$(random 32)"
