# shellcheck shell=bash
# Private PostgreSQL and RabbitMQ servers in folders. How they are set up is
# known to scripts/cmd/servers, which the tests that break servers share.

# servers runs that program.
servers() { "$state/bin/servers" "$@" 9>&-; }

# server_ready asks whether a server answers; why it does not is of no interest.
server_ready() { servers ready "$@" 2>/dev/null; }

servers_build() { build ./scripts/cmd/servers; }

# postgres_start starts the server of a folder unless it runs, and waits until it
# answers: postgres_start DIR PORT PASSWORD_FILE [SETTING…]
postgres_start() {
  local dir=$1 flags=(-dir "$1" -port "$2" -password "$3") setting
  for setting in "${@:4}"; do
    flags+=(-set "$setting")
  done
  running "$dir.pid" || start "$dir.pid" "$dir.log" "$state/bin/servers" run postgres "${flags[@]}"
  wait_for PostgreSQL "$dir.pid" "$dir.log" server_ready postgres "${flags[@]}"
}

# postgres_stop ends open sessions and shuts down cleanly.
postgres_stop() { stop "$1.pid" INT; }

# rabbitmq_start starts the node of a folder unless it runs, and waits until it
# answers. One that an interrupted command has left may still be starting:
# rabbitmq_start DIR PORTS PASSWORD_FILE [FLAG…]
# PORTS are five, with commas: AMQP, management, metrics, distribution, epmd.
rabbitmq_start() {
  local dir=$1 flags=(-dir "$1" -ports "$2" -password "$3" "${@:4}")
  running "$dir.epmd.pid" || start "$dir.epmd.pid" "$dir.log" "$state/bin/servers" run epmd "${flags[@]}"
  wait_for "epmd on port ${2##*,}" "$dir.epmd.pid" "$dir.log" server_ready epmd "${flags[@]}"
  running "$dir.pid" || start "$dir.pid" "$dir.log" "$state/bin/servers" run rabbitmq "${flags[@]}"
  wait_for RabbitMQ "$dir.pid" "$dir.log" server_ready rabbitmq "${flags[@]}"
}

rabbitmq_stop() {
  stop "$1.pid" TERM 60
  stop "$1.epmd.pid"
}

# server_remove deletes the folder of a server, which can be a link to one where
# the server's account can reach it.
server_remove() {
  if [[ -L $1 ]]; then
    rm -rf "$(readlink "$1")"
  fi
  rm -rf "$1"
}
