# shellcheck shell=bash
# Three RabbitMQ nodes on this machine instead of one: RABBITMQ_NODES=3. Their
# queues are in a virtual host of their own, in which each has three copies.

rabbitmq_nodes=$(nodes rabbitmq)
cluster_vhost=cityconnect

# The nodes' ports, each as rabbitmq_start takes them; cluster_ports fills them in.
node_ports=()

# is_cluster tells whether there are several nodes.
is_cluster() { [[ $rabbitmq_nodes == 3 ]]; }

# cluster_runs tells whether any of the nodes runs.
cluster_runs() {
  local pidfile
  for pidfile in "$native_dir"/rabbitmq-[1-9].pid; do
    running "$pidfile" && return
  done
  return 1
}

# cluster_ports reads the nodes' ports. They are chosen once, and again while no
# node runs and something else took one of them.
cluster_ports() {
  local file=$native_dir/rabbitmq.ports ports node port free=1
  node_ports=()
  [[ ! -s $file ]] || mapfile -t node_ports <"$file"
  cluster_runs && return
  stop "$native_dir/epmd.pid" # nodes that were killed leave it behind
  for node in "${node_ports[@]}"; do
    for port in ${node//,/ }; do
      port_used "$port" && free=
    done
  done
  [[ -z $free || ${#node_ports[@]} != "$rabbitmq_nodes" ]] || return 0
  mapfile -t ports < <(free_ports $((1 + 4 * rabbitmq_nodes)))
  node_ports=()
  for ((node = 0; node < rabbitmq_nodes; node++)); do
    node_ports+=("$(IFS=, && echo "${ports[*]:1+4*node:4},${ports[0]}")")
  done
  printf '%s\n' "${node_ports[@]}" >"$file"
}

# node_port prints a port of a node: node_port NUMBER amqp|management
node_port() {
  local ports
  IFS=, read -ra ports <<<"${node_ports[$1 - 1]}"
  case $2 in
    amqp) echo "${ports[0]}" ;;
    management) echo "${ports[1]}" ;;
  esac
}

# node_addresses prints the addresses of all nodes, with commas between them:
# node_addresses amqp|management
node_addresses() {
  local node addresses=()
  for ((node = 1; node <= rabbitmq_nodes; node++)); do
    addresses+=("127.0.0.1:$(node_port "$node" "$1")")
  done
  (IFS=, && echo "${addresses[*]}")
}

# node_flags prints the flags of the program servers for a node, one a line:
# node_flags NUMBER PASSWORD_FILE
node_flags() {
  printf '%s\n' -dir "$native_dir/rabbitmq-$1" -ports "${node_ports[$1 - 1]}" -password "$2" -statistics 5s \
    -node "city$1" -nodes "$(seq -f 'city%.0f' -s , "$rabbitmq_nodes")" -cookie "$native_dir/rabbitmq.cookie"
}

# cluster_start starts the nodes that do not run: cluster_start PASSWORD_FILE
cluster_start() {
  local node flags
  secret "$native_dir/rabbitmq.cookie" >/dev/null
  epmd_start "$1"
  # All at the same time: a node that is started again waits for the others.
  for ((node = 1; node <= rabbitmq_nodes; node++)); do
    node_start "$node" "$1"
  done
  for ((node = 1; node <= rabbitmq_nodes; node++)); do
    node_wait "$node" "$1"
  done
  mapfile -t flags < <(node_flags 1 "$1")
  servers vhost rabbitmq -name "$cluster_vhost" "${flags[@]}"
}

# epmd_start starts what the nodes find each other by: epmd_start PASSWORD_FILE
epmd_start() {
  local pidfile=$native_dir/epmd.pid log=$native_dir/epmd.log flags
  running "$pidfile" && return
  mapfile -t flags < <(node_flags 1 "$1")
  start "$pidfile" "$log" "$state/bin/servers" run epmd "${flags[@]}"
  wait_for "epmd on port ${node_ports[0]##*,}" "$pidfile" "$log" server_ready epmd "${flags[@]}"
}

# node_start starts a node that does not run: node_start NUMBER PASSWORD_FILE
node_start() {
  local dir=$native_dir/rabbitmq-$1 flags
  running "$dir.pid" && return
  say "starting RabbitMQ node $1 on port $(node_port "$1" amqp)"
  mapfile -t flags < <(node_flags "$1" "$2")
  start "$dir.pid" "$dir.log" "$state/bin/servers" run rabbitmq "${flags[@]}"
}

# node_wait returns once a node answers: node_wait NUMBER PASSWORD_FILE
node_wait() {
  local dir=$native_dir/rabbitmq-$1 flags
  mapfile -t flags < <(node_flags "$1" "$2")
  wait_for "RabbitMQ node $1" "$dir.pid" "$dir.log" server_ready rabbitmq "${flags[@]}"
}

# node_stop stops one node: node_stop DIR
node_stop() { stop "$1.pid" TERM 60; }

# cluster_stop stops all nodes at the same time, and what they share.
cluster_stop() {
  local pidfile pid stopping=()
  for pidfile in "$native_dir"/rabbitmq-[1-9].pid; do
    node_stop "${pidfile%.pid}" &
    stopping+=($!)
  done
  for pid in "${stopping[@]}"; do # and for nothing else: a build may be under way
    wait "$pid"
  done
  stop "$native_dir/epmd.pid"
}

# cluster_remove deletes the nodes' data.
cluster_remove() {
  local node
  for node in 1 2 3; do
    server_remove "$native_dir/rabbitmq-$node"
  done
}
