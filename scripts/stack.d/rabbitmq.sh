# shellcheck shell=bash
# A private RabbitMQ node in a folder: its own name, cookie, data, log and port
# mapper, so that it never meets a node that the machine already runs.

# rabbitmq_bin prints the folder of RabbitMQ's own scripts. Debian's wrappers in
# /usr/sbin are passed by: they insist on the system's folders.
rabbitmq_bin() {
  local dir
  for dir in /usr/lib/rabbitmq/bin /opt/homebrew/opt/rabbitmq/sbin /usr/local/opt/rabbitmq/sbin; do
    if [[ -x $dir/rabbitmq-server ]]; then
      echo "$dir"
      return
    fi
  done
  has rabbitmq-server && dirname "$(command -v rabbitmq-server)"
}

# rabbitmq_start starts the node of a folder:
# rabbitmq_start DIR PASSWORD AMQP_PORT MANAGEMENT_PORT METRICS_PORT DIST_PORT EPMD_PORT
rabbitmq_start() {
  local dir=$1 password=$2 amqp=$3 management=$4 metrics=$5 dist=$6 epmd=$7 user home
  user=$(server_user rabbitmq)
  home=$(server_home "$dir" "$user")
  rabbitmq_configure "$home" "$password" "$amqp" "$management" "$metrics"
  chown -R "$user" "$home"

  # Our own port mapper in the foreground: Erlang would start one as a daemon
  # that nobody stops.
  start "$user" "$dir.epmd.pid" "$dir.log" "$(epmd_bin)" -address 127.0.0.1 -port "$epmd"
  wait_for epmd 20 "$dir.epmd.pid" "$dir.log" port_open "$epmd"

  # With RUNNING_UNDER_SYSTEMD the script becomes the server instead of waiting
  # for it, so that the pid that we note is the server's.
  start "$user" "$dir.pid" "$dir.log" env \
    HOME="$home" RUNNING_UNDER_SYSTEMD=1 \
    RABBITMQ_NODENAME=cityconnect@localhost RABBITMQ_NODE_PORT="$amqp" RABBITMQ_DIST_PORT="$dist" \
    ERL_EPMD_PORT="$epmd" ERL_EPMD_ADDRESS=127.0.0.1 \
    RABBITMQ_CONF_ENV_FILE="$home/rabbitmq-env.conf" RABBITMQ_CONFIG_FILE="$home/rabbitmq.conf" \
    RABBITMQ_ADVANCED_CONFIG_FILE="$home/advanced.config" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$home/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$home/mnesia" RABBITMQ_MNESIA_DIR="$home/mnesia/node" \
    RABBITMQ_LOG_BASE="$home/log" RABBITMQ_LOGS=- RABBITMQ_PID_FILE="$home/server.pid" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}' \
    "$(rabbitmq_bin)/rabbitmq-server"
  wait_for RabbitMQ 120 "$dir.pid" "$dir.log" rabbitmq_answers "$amqp" "$management" "$password"
}

epmd_bin() {
  local path
  for path in "$(command -v epmd || true)" /usr/lib/erlang/bin/epmd /usr/lib/erlang/erts-*/bin/epmd /usr/lib64/erlang/erts-*/bin/epmd; do
    if [[ -x $path ]]; then
      echo "$path"
      return
    fi
  done
  die "Erlang's epmd is not installed"
}

# rabbitmq_configure writes the node's whole configuration. The log of the quorum
# queues is in memory until a file of it is full: with RabbitMQ's own 512 MB its
# memory rises for minutes and falls at once.
rabbitmq_configure() {
  local home=$1 password=$2 amqp=$3 management=$4 metrics=$5
  cat >"$home/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$amqp
management.tcp.ip = 127.0.0.1
management.tcp.port = $management
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = $metrics
default_user = cityconnect
default_pass = $password
collect_statistics_interval = ${RABBITMQ_STATISTICS_MS:-5000}
raft.wal_max_size_bytes = 67108864
log.console.level = warning
CONF
  echo '[rabbitmq_management,rabbitmq_prometheus].' >"$home/enabled_plugins"
  echo '[].' >"$home/advanced.config"
  : >"$home/rabbitmq-env.conf"
  if [[ ! -s $home/.erlang.cookie ]]; then
    secret "$home/.erlang.cookie" >/dev/null
  fi
  chmod 400 "$home/.erlang.cookie"
}

# rabbitmq_answers tells whether AMQP and the management API are open for us.
rabbitmq_answers() {
  local amqp=$1 management=$2 password=$3 token
  token=$(printf 'cityconnect:%s' "$password" | base64 | tr -d '\n')
  port_open "$amqp" && http_ok "$management" /api/health/checks/alarms "Authorization: Basic $token"
}

rabbitmq_stop() {
  stop "$1.pid" TERM 60
  stop "$1.epmd.pid"
}
