#!/bin/sh
# Makes the stack's passwords, keys and database addresses, one folder for each
# part that reads them, so that no part sees another's:
#
#   secrets.sh DIR     (needs POSTGRES_ADDRESS, RABBITMQ_ADDRESS and
#                       RABBITMQ_MANAGEMENT_ADDRESS, each host:port, or those of
#                       several nodes with commas between them; the queues are in
#                       RABBITMQ_VHOST, if that is given. POSTGRES_SSLMODE is disable
#                       unless given: the stacks' own network)
#
# What is there stays; what the environment gives is taken instead of a random
# value. Nothing is printed.
set -eu
dir=${1:?must be the folder to make, such as secrets}
if [ -z "${REPORT_DATABASE_URL-}" ] || [ -z "${NOTIFICATION_DATABASE_URL-}" ]; then
  : "${POSTGRES_ADDRESS:?must be host:port of PostgreSQL, such as 127.0.0.1:5432}"
fi
if [ -z "${RABBITMQ_URL-}" ]; then
  : "${RABBITMQ_ADDRESS:?must be host:port of RabbitMQ, such as 127.0.0.1:5672}"
fi
if [ -z "${RABBITMQ_MANAGEMENT_URL-}" ]; then
  : "${RABBITMQ_MANAGEMENT_ADDRESS:?must be host:port of its management API, such as 127.0.0.1:15672}"
fi
umask "${SECRETS_UMASK:-077}"
mkdir -p "$dir/postgres" "$dir/rabbitmq" "$dir/migrate" "$dir/report" "$dir/notification" "$dir/photo"

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
for role in reports reports_owner notifications notifications_owner; do
  keep "postgres/${role}_password" '' "$(random 24)"
done
keep rabbitmq/password "${RABBITMQ_PASSWORD-}" "$(random 24)"
keep rabbitmq/erlang_cookie '' "$(random 24)"
keep rabbitmq/report_password '' "$(random 24)"
keep rabbitmq/notification_password '' "$(random 24)"
keep rabbitmq/photo_password '' "$(random 24)"
# The log of the quorum queues is in memory until a file of it is full: with the
# image's 512 MB, the broker's memory rises for minutes and falls at once.
cat >"$dir/rabbitmq/20-user.conf" <<CONF
default_user = cityconnect
default_pass = $(read_secret rabbitmq/password)
loopback_users = none
log.console = true
raft.wal_max_size_bytes = 67108864
CONF

# Addresses are written each time: the native stack's ports may change. Among
# several PostgreSQL nodes the primary is taken, and one that does not answer is
# given up soon.
# database_url DATABASE [_owner]: the owner's are for the migrations, which use
# the service's own where that was given and no other.
database_url() {
  several=
  case $POSTGRES_ADDRESS in
    *,*) several='&target_session_attrs=read-write&connect_timeout=2' ;;
  esac
  printf 'postgres://cityconnect_%s%s:%s@%s/cityconnect_%s?sslmode=%s%s' \
    "$1" "${2-}" "$(read_secret "postgres/$1${2-}_password")" "$POSTGRES_ADDRESS" "$1" "${POSTGRES_SSLMODE:-disable}" "$several"
}
write() { printf %s "$2" >"$dir/$1"; }
write report/database_url "${REPORT_DATABASE_URL:-$(database_url reports)}"
write notification/database_url "${NOTIFICATION_DATABASE_URL:-$(database_url notifications)}"
write migrate/report_database_url "${REPORT_OWNER_DATABASE_URL:-${REPORT_DATABASE_URL:-$(database_url reports _owner)}}"
write migrate/notification_database_url \
  "${NOTIFICATION_OWNER_DATABASE_URL:-${NOTIFICATION_DATABASE_URL:-$(database_url notifications _owner)}}"

# broker_user SERVICE
broker_user() { printf 'cityconnect_%s:%s' "$1" "$(read_secret "rabbitmq/$1_password")"; }
write report/rabbitmq_url "${REPORT_RABBITMQ_URL:-${RABBITMQ_URL:-amqp://$(broker_user report)@$RABBITMQ_ADDRESS/${RABBITMQ_VHOST-}}}"
write notification/rabbitmq_url \
  "${NOTIFICATION_RABBITMQ_URL:-${RABBITMQ_URL:-amqp://$(broker_user notification)@$RABBITMQ_ADDRESS/${RABBITMQ_VHOST-}}}"
rm -f "$dir/report/rabbitmq_management_url" # as it was once
# The photo worker is a part of report-service, and has queues of its own.
cp "$dir/report/database_url" "$dir/photo/database_url"
write photo/rabbitmq_url "${PHOTO_RABBITMQ_URL:-${RABBITMQ_URL:-amqp://$(broker_user photo)@$RABBITMQ_ADDRESS/${RABBITMQ_VHOST-}}}"
write photo/rabbitmq_management_url "${RABBITMQ_MANAGEMENT_URL:-http://$(broker_user photo)@$RABBITMQ_MANAGEMENT_ADDRESS}"
# For operators, and for programs that act as one.
write rabbitmq/rabbitmq_url "${RABBITMQ_URL:-amqp://cityconnect:$(read_secret rabbitmq/password)@$RABBITMQ_ADDRESS/${RABBITMQ_VHOST-}}"
write notification/rabbitmq_management_url \
  "${RABBITMQ_MANAGEMENT_URL:-http://$(broker_user notification)@$RABBITMQ_MANAGEMENT_ADDRESS}"

both recipient_key "${RECIPIENT_KEY-}" "k1:$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
cp "$dir/report/recipient_key" "$dir/photo/recipient_key"
# A private key of P-256 is any 32 bytes but one in four billion.
keep notification/push_vapid_key "${PUSH_VAPID_KEY-}" "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"
both guest_key "${GUEST_KEY-}" "$(random 32)"
both auth_jwt_secret "${AUTH_JWT_SECRET-}" "$(random 32)"
