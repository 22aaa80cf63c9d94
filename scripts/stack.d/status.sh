# shellcheck shell=bash
# What runs, where, and how it feels; and what it wrote.

# native_status prints one line a process. It fails if something is not well.
native_status() {
  local well=0 service number
  if [[ -s $native_dir/ports ]]; then
    # shellcheck source=/dev/null
    source "$native_dir/ports"
  fi
  printf '%-16s %-8s %-24s %s\n' NAME PID PORTS STATE
  if is_patroni; then
    patroni_status || well=1
  else
    status_line postgres "$postgres_port" || well=1
  fi
  if is_cluster; then
    cluster_ports
    for number in $(seq "$rabbitmq_nodes"); do
      status_line "rabbitmq-$number" "$(node_port "$number" amqp)" "management $(node_port "$number" management)" || well=1
    done
  else
    status_line rabbitmq "$amqp_port" "management $management_port" || well=1
  fi
  for service in report notification; do
    for number in $(seq "$replicas"); do
      status_line "$service-$number" "$(replica_port "$service" "$number")" \
        "operations $(replica_port "$service" "$number" operations)" /readyz || well=1
    done
  done
  for number in $(seq "$replicas"); do
    status_line "photo-$number" "$(replica_port photo "$number")" '' /readyz || well=1
    status_line "delivery-$number" "$(replica_port delivery "$number")" '' /readyz || well=1
  done
  ! own_mailbox || status_line mailbox "$mailbox_port" "SMTP $mailbox_smtp_port" || well=1
  status_line gateway "$gateway_port" "TLS $gateway_tls_port" || well=1
  broker_hint
  return "$well"
}

# broker_hint tells how to look into the broker. The password is not printed where
# nobody asked for it.
broker_hint() {
  say 'the broker: curl -su "cityconnect:$(scripts/stack secret rabbitmq/password)" "$(scripts/stack management)/api/queues"'
}

native_management() {
  if is_cluster; then
    cluster_ports
    echo "http://127.0.0.1:$(node_port 1 management)"
  else
    # shellcheck source=/dev/null
    source "$native_dir/ports"
    echo "http://127.0.0.1:$management_port"
  fi
}

native_broker() { native_secret rabbitmq/rabbitmq_url; }

native_secret() { cat "$native_dir/secrets/$1"; }

# status_line prints a process's line. One with a path is asked there whether it
# is ready: status_line NAME PORT [DETAIL [/PATH]]
status_line() {
  local name=$1 port=$2 detail=${3:-} path=${4:-} pid=- health=stopped
  if running "$native_dir/$name.pid"; then
    pid=$(pid_of "$native_dir/$name.pid")
    health=running
    if [[ -n $path ]]; then
      health='not ready'
      http_ok "$port" "$path" && health=ready
    fi
  fi
  printf '%-16s %-8s %-24s %s\n' "$name" "$pid" "$port${detail:+, $detail}" "$health"
  [[ $health == running || $health == ready ]]
}

# native_logs prints the ends of the logs and follows them.
native_logs() {
  local logs=("$state"/logs/*.log "$native_dir"/*.log)
  if (($# > 0)); then
    logs=()
    local name
    for name in "$@"; do
      logs+=("$state/logs/$name"*.log "$native_dir/$name"*.log)
    done
  fi
  tail -n 20 -F "${logs[@]}" 2>/dev/null
}
