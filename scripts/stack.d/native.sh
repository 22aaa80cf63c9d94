# shellcheck shell=bash
# The whole stack as processes of this machine: servers, migrations, services,
# gateway. Bringing it up again starts what is missing, and restarts what was
# built or configured differently.

native_dir=$state/native

# The servers' ports; native_ports fills them in.
postgres_port='' amqp_port='' management_port='' metrics_port='' dist_port='' epmd_port=''

# native_up brings everything up and returns once the gateway answers. Its
# arguments are packages to build beside the stack's own.
native_up() {
  local build install packages=()
  if is_patroni; then
    patroni_find
    mapfile -t packages < <(patroni_packages)
  fi
  need_packages "${packages[@]}" &
  install=$!
  if [[ -n $archive ]]; then
    timed "took the programs of $(basename "$archive")" unpack_release
  else
    timed "compiled what starts the servers" servers_build
  fi
  wait "$install" || exit 1
  remember_nodes
  build=''
  if [[ -z $archive ]]; then
    timed "compiled the services" native_build "$@" &
    build=$!
  fi
  native_servers
  [[ -z $build ]] || wait "$build" || exit 1
  timed "migrated the databases" native_migrate
  mailbox_up
  services_up
  gateway_up
  remember native
  say "up: $(page_address) ($SECONDS s)"
  ! own_mailbox || say "mails: $(mailbox_address)"
}

native_receiver() { echo 127.0.0.1; }

# native_build compiles the programs while the servers start.
native_build() {
  build ./report-service/cmd/{report-service,photo-worker} ./notification-service/cmd/{notification-service,delivery-worker} \
    ./migrations/cmd/migrate ./scripts/cmd/mailbox "$@"
}

# native_servers starts PostgreSQL and RabbitMQ and makes what the services
# need there.
native_servers() {
  local postgres amqp management vhost=
  native_ports
  if is_patroni; then
    patroni_ports
    postgres=$(patroni_addresses)
  else
    postgres=127.0.0.1:$postgres_port
  fi
  if is_cluster; then
    cluster_ports
    amqp=$(node_addresses amqp) management=$(node_addresses management) vhost=$cluster_vhost
    management_port=$(node_port 1 management)
    # For who cuts connections, and spares those to the port mapper.
    sed -i "s/^epmd_port=.*/epmd_port=${node_ports[0]##*,}/" "$native_dir/ports"
  else
    amqp=127.0.0.1:$amqp_port management=127.0.0.1:$management_port
  fi
  POSTGRES_ADDRESS=$postgres RABBITMQ_ADDRESS=$amqp RABBITMQ_VHOST=$vhost \
    RABBITMQ_MANAGEMENT_ADDRESS=$management "$root/deploy/secrets.sh" "$native_dir/secrets"
  local password=$native_dir/secrets/postgres/superuser_password
  if is_patroni; then
    postgres_stop "$native_dir/postgres" # the single server of before, if it runs
    patroni_start "$password"
  elif patroni_stop; then
    timed "$(unless_running postgres "started PostgreSQL on port $postgres_port")" postgres_start "$native_dir/postgres" "$postgres_port" "$password"
  fi
  (
    export PGHOST=127.0.0.1 PGPORT=$postgres_port PGUSER=cityconnect PGPASSWORD PATH
    PGPASSWORD=$(<"$password") PATH=$(servers find postgres):$PATH
    if is_patroni; then
      PGPORT=$(wait_for "a primary of PostgreSQL" "$native_dir/postgres-1.pid" "$native_dir/postgres-1.log" patroni_primary_port)
    fi
    SECRETS=$native_dir/secrets/postgres "$root/deploy/postgres/databases.sh"
    ! is_patroni || patroni_replayed cityconnect_notifications
  ) 9>&-
  if is_cluster; then
    rabbitmq_stop "$native_dir/rabbitmq" # the single node of before, if it runs
    cluster_start "$native_dir/secrets/rabbitmq/password"
  elif cluster_stop; then
    timed "$(unless_running rabbitmq "started RabbitMQ on port $amqp_port")" rabbitmq_start "$native_dir/rabbitmq" "$amqp_port,$management_port,$metrics_port,$dist_port,$epmd_port" \
      "$native_dir/secrets/rabbitmq/password"
  fi
  SECRETS=$native_dir/secrets/rabbitmq RABBITMQ_VHOST=$vhost "$root/deploy/rabbitmq/users.sh" "127.0.0.1:$management_port" 9>&-
}

# unless_running prints a text unless the process of that name runs: what `timed` says
# is what was done.
unless_running() { running "$native_dir/$1.pid" || echo "$2"; }

# native_ports reads the servers' ports. They are chosen once, and again for a
# server that does not run while something else took one of its ports.
native_ports() {
  mkdir -p "$native_dir"
  if [[ -s $native_dir/ports ]]; then
    # shellcheck source=/dev/null
    source "$native_dir/ports"
  fi
  # A node that was killed leaves its port mapper behind, on a port of its own.
  running "$native_dir/rabbitmq.pid" || rabbitmq_stop "$native_dir/rabbitmq"
  local ports
  mapfile -t ports < <(free_ports 6)
  ports_usable postgres "$postgres_port" || postgres_port=${ports[0]}
  ports_usable rabbitmq "$amqp_port" "$management_port" "$metrics_port" "$dist_port" "$epmd_port" ||
    read -r amqp_port management_port metrics_port dist_port epmd_port <<<"${ports[*]:1}"
  printf '%s_port=%s\n' postgres "$postgres_port" amqp "$amqp_port" management "$management_port" \
    metrics "$metrics_port" dist "$dist_port" epmd "$epmd_port" >"$native_dir/ports"
}

# ports_usable tells whether our own server holds its ports, or nobody does.
ports_usable() {
  local server=$1 port
  running "$native_dir/$server.pid" && return
  for port in "${@:2}"; do
    [[ -n $port ]] || return 1
    port_used "$port" && return 1
  done
  return 0
}

native_migrate() {
  local database
  for database in report notification; do
    DATABASE_URL='' DATABASE_URL_FILE=$native_dir/secrets/migrate/${database}_database_url \
      logged migrate "$state/bin/migrate" up -database "$database" 9>&-
  done
}

# native_down stops everything; the data stays.
native_down() {
  gateway_down
  services_down
  mailbox_down
  native_stop_servers
  forget
}

# native_stop stops one process.
native_stop() {
  case ${1:-} in
    gateway) gateway_down ;;
    mailbox) mailbox_down ;;
    postgres | rabbitmq) "$1_stop" "$native_dir/$1" ;;
    rabbitmq-[123]) node_stop "$native_dir/$1" ;;
    postgres-[123]) patroni_node_stop "$native_dir/$1" ;;
    etcd-[123]) stop "$native_dir/$1.pid" ;;
    report-[1-9]* | notification-[1-9]* | photo-[1-9]* | delivery-[1-9]*) replica_stop "$1" ;;
    *) die "stop: must be gateway, mailbox, postgres, postgres-NUMBER, etcd-NUMBER, rabbitmq, rabbitmq-NUMBER, report-NUMBER, notification-NUMBER, photo-NUMBER or delivery-NUMBER, not '${1:-}'" ;;
  esac
}

# native_start starts one replica, the gateway, or one node of a cluster.
native_start() {
  local number=${1#*-} password=$native_dir/secrets
  case ${1:-} in
    rabbitmq-[123])
      password+=/rabbitmq/password
      is_cluster || die "start: this stack has one RabbitMQ; scripts/stack up starts it"
      cluster_ports
      epmd_start "$password"
      node_start "$number" "$password"
      node_wait "$number" "$password"
      ;;
    postgres-[123])
      password+=/postgres/superuser_password
      is_patroni || die "start: this stack has one PostgreSQL; scripts/stack up starts it"
      patroni_find
      patroni_ports
      patroni_node_start "$number" "$password"
      patroni_node_wait "$number" "$password"
      ;;
    gateway | report-[1-9]* | notification-[1-9]* | photo-[1-9]* | delivery-[1-9]*)
      [[ -e $state/up ]] || die "start: this stack is down; scripts/stack up starts it"
      if [[ $1 == gateway ]]; then gateway_up; else replica_up "${1%-*}" "$number"; fi
      ;;
    *) die "start: must be gateway, report-NUMBER, notification-NUMBER, photo-NUMBER, delivery-NUMBER, rabbitmq-NUMBER or postgres-NUMBER, not '${1:-}'" ;;
  esac
}

native_stop_servers() {
  cluster_stop
  rabbitmq_stop "$native_dir/rabbitmq"
  patroni_stop
  postgres_stop "$native_dir/postgres"
}

# native_clean stops everything and removes the data.
native_clean() {
  native_down
  cluster_remove
  patroni_remove
  server_remove "$native_dir/rabbitmq"
  server_remove "$native_dir/postgres"
  rm -rf "$native_dir"
  forget_nodes
}

# page_address is where people look.
page_address() { echo "http://localhost:$gateway_port/"; }
