# shellcheck shell=bash
# The replicas of both services and of their workers. Replica 1 listens on
# the base port, each further one 100 above: 3002, 3102, 3202 … The same holds for
# the ports of what only operators may see: 3012, 3112 … The workers have no other.

replicas=${REPLICAS:-1}
report_port=${REPORT_PORT:-3002}
notification_port=${NOTIFICATION_PORT:-3003}
report_operations_port=${REPORT_OPERATIONS_PORT:-$((report_port + 10))}
notification_operations_port=${NOTIFICATION_OPERATIONS_PORT:-$((notification_port + 10))}
delivery_operations_port=${DELIVERY_OPERATIONS_PORT:-$((notification_operations_port + 1))}
delivery_port=$delivery_operations_port
photo_operations_port=${PHOTO_OPERATIONS_PORT:-$((notification_operations_port + 2))}
photo_port=$photo_operations_port

mailbox_port=${MAILBOX_PORT:-$((notification_port + 20))}
mailbox_smtp_port=${MAILBOX_SMTP_PORT:-$((mailbox_port + 1))}

# own_mailbox tells whether mails go to the mailbox of this stack: in development,
# unless the environment names a mail server.
own_mailbox() { [[ ${AUTH_MODE:-dev} == dev && -z ${MAIL_URL:-} ]]; }

# mailbox_address is where its mails are looked at.
mailbox_address() { echo "http://localhost:$mailbox_port/"; }

# mailbox_up starts the mailbox that all mails go to, unless it runs on the ports that
# are set now.
mailbox_up() {
  local pidfile=$native_dir/mailbox.pid log=$state/logs/mailbox.log
  local ports="$mailbox_smtp_port $mailbox_port" noted=$native_dir/mailbox.ports
  own_mailbox || return 0
  if running "$pidfile"; then
    [[ -s $noted && $(<"$noted") != "$ports" ]] || return 0
    mailbox_down
  fi
  mkdir -p "$native_dir"
  echo "$ports" >"$noted"
  start "$pidfile" "$log" "$state/bin/mailbox" -smtp "127.0.0.1:$mailbox_smtp_port" -http "127.0.0.1:$mailbox_port"
  timed "started the mailbox on port $mailbox_port" wait_for mailbox "$pidfile" "$log" http_ok "$mailbox_port" /
}

mailbox_down() { stop "$native_dir/mailbox.pid" TERM 5; }

# program prints what a replica runs: program report|notification|photo|delivery
program() {
  case $1 in
    photo | delivery) echo "$1-worker" ;;
    *) echo "$1-service" ;;
  esac
}

# secrets_folder prints where a replica's secrets are. The delivery worker is a part of
# notification-service, and has its.
secrets_folder() { echo "$native_dir/secrets/${1/delivery/notification}"; }

# replica_port prints a port of a replica:
# replica_port report|notification|photo|delivery NUMBER [operations]
replica_port() {
  local base=$1${3:+_$3}_port
  echo $((${!base} + 100 * ($2 - 1)))
}

# services_up starts every replica that does not run as it should, and stops
# those that are too many.
services_up() {
  local service number
  for service in report notification photo delivery; do
    for number in $(seq "$replicas"); do
      replica_up "$service" "$number"
    done
  done
  for service in $(replicas_running); do
    ((${service#*-} <= replicas)) || replica_stop "$service"
  done
}

# replica_up starts one replica, unless it runs with this program, this
# environment and these secrets, and waits until it is ready.
replica_up() {
  local name=$1-$2 port operations environment stamp pidfile=$native_dir/$1-$2.pid log=$state/logs/$1-$2.log
  port=$(replica_port "$1" "$2")
  operations=$(replica_port "$1" "$2" operations)
  mapfile -t environment < <(service_environment "$1" "$port" "$operations")
  stamp=$({ printf '%s\n' "${environment[@]}"; settings; secrets_of "$1"; cat "$state/bin/$(program "$1")"; } | cksum)
  if running "$pidfile" && [[ $stamp == "$(cat "$native_dir/$name.stamp" 2>/dev/null)" ]]; then
    return
  fi
  replica_stop "$name"
  start "$pidfile" "$log" env "${environment[@]}" "$state/bin/$(program "$1")"
  [[ $1 != photo ]] || give_way "$(pid_of "$pidfile")"
  timed "started $name on port $port" wait_for "$name" "$pidfile" "$log" http_ok "$port" /readyz
  echo "$stamp" >"$native_dir/$name.stamp"
}

# service_environment prints the environment of a replica, one NAME=value a line:
# service_environment report|notification|photo|delivery PORT OPERATIONS_PORT
# Secrets go by file, so that no process list shows them; what the caller's
# environment holds of them is taken away.
service_environment() {
  local secrets name
  secrets=$(secrets_folder "$1")
  for name in AUTH_JWT_SECRET GUEST_KEY PUSH_VAPID_KEY POSTGRES_PASSWORD RABBITMQ_PASSWORD RABBITMQ_MANAGEMENT_URL \
    {REPORT,NOTIFICATION}_{DATABASE,OWNER_DATABASE,RABBITMQ}_URL PHOTO_RABBITMQ_URL; do
    printf '%s=\n' "$name"
  done
  for name in DATABASE_URL RABBITMQ_URL RABBITMQ_MANAGEMENT_URL RECIPIENT_KEY GUEST_KEY; do
    [[ ! -e $secrets/${name,,} ]] || printf '%s=\n%s_FILE=%s\n' "$name" "$name" "$secrets/${name,,}"
  done
  printf '%s\n' "HTTP_ADDR=127.0.0.1:$2" "OPERATIONS_ADDR=127.0.0.1:$3" "AUTH_MODE=${AUTH_MODE:-dev}" \
    "AUTH_ISSUER=${AUTH_ISSUER:-cityconnect-dev}" "AUTH_AUDIENCE=${AUTH_AUDIENCE:-cityconnect}" \
    "AUTH_JWT_SECRET_FILE=${AUTH_JWT_SECRET_FILE-$secrets/auth_jwt_secret}" \
    "GUESTS=${GUESTS:-on}" "REPORT_SERVICE_URL=${REPORT_SERVICE_URL-http://127.0.0.1:$gateway_port}" \
    "MAP_BOUNDS=${MAP_BOUNDS-106.777,-6.604,106.934,-6.444}" "PAGE_MAP_FILE=${PAGE_MAP_FILE-$root/deploy/map/bogor.pmtiles}" \
    "PAGE_MAP_CENTER=${PAGE_MAP_CENTER-106.7995,-6.5950,14}" "PHOTO_STORE=${PHOTO_STORE-file://$native_dir/photos}"
  if [[ ${AUTH_MODE:-dev} == dev ]]; then # receivers of webhooks may be on this machine
    printf '%s\n' "WEBHOOK_ALLOW_HTTP=${WEBHOOK_ALLOW_HTTP:-true}" "WEBHOOK_ALLOW_NETWORKS=${WEBHOOK_ALLOW_NETWORKS:-127.0.0.0/8}"
  fi
  if [[ -e $secrets/push_vapid_key ]]; then # of which the worker's folder is the service's
    printf '%s\n' "PUSH_VAPID_KEY_FILE=${PUSH_VAPID_KEY_FILE-$secrets/push_vapid_key}" \
      "PUSH_CONTACT=${PUSH_CONTACT-mailto:operations@city.example.org}"
  fi
  if own_mailbox; then
    printf '%s\n' "MAIL_URL=smtp+insecure://127.0.0.1:$mailbox_smtp_port" "PUBLIC_URL=${PUBLIC_URL:-http://localhost:$gateway_port}" \
      "MAIL_FROM=${MAIL_FROM:-no-reply@city.example.org}" "MAIL_BOUNCE_DOMAIN=${MAIL_BOUNCE_DOMAIN:-bounces.city.example.org}" \
      "MAIL_READ_FIRST=${MAIL_READ_FIRST:-1s}" "DIGEST_SPREAD=${DIGEST_SPREAD:-0s}" # a developer does not wait
  fi
}

# secrets_of prints what the files contain that a service reads its secrets from:
# their names stay while addresses and keys in them change.
secrets_of() {
  cat "$(secrets_folder "$1")"/*
  if [[ -n ${AUTH_JWT_SECRET_FILE:-} ]]; then
    cat "$AUTH_JWT_SECRET_FILE"
  fi
}

# settings prints what the environment says of the variables in .env.example. How
# many nodes a server has, services see by its addresses.
settings() {
  local names
  names=$(grep -oE '^#?[A-Z][A-Z0-9_]+=' "$root/.env.example" | tr -d '#=' | paste -sd '|')
  env | grep -E "^($names)=" | grep -vE '^(RABBITMQ|POSTGRES)_NODES=' | sort || true
}

# replicas_running prints the names of the replicas that have a pid file.
replicas_running() {
  local pidfile
  for pidfile in "$native_dir"/{report,notification,photo,delivery}-*.pid; do
    [[ -e $pidfile ]] && basename "$pidfile" .pid
  done
  return 0
}

# replica_stop lets a replica drain.
replica_stop() {
  stop "$native_dir/$1.pid" TERM 40
  rm -f "$native_dir/$1.stamp"
}

# services_down lets all replicas drain at the same time.
services_down() {
  local name
  for name in $(replicas_running); do
    replica_stop "$name" &
  done
  wait
}
