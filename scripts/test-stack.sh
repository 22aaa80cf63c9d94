#!/usr/bin/env bash
# Breaks the servers of a running native stack as a crash would, one by one, and
# sees that `scripts/stack up` brings each back, that the city still works, and
# that `scripts/stack down` leaves no process behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
native=${STACK_DIR:-$PWD/.stack}/native

fail() {
  echo "test-stack: $*" >&2
  exit 1
}

# crash kills the main process of a server alone.
crash() { kill -KILL "$(head -n 1 "$native/$1.pid")"; }

# revive brings everything up again, at once, and expects it to be ready. On a busy
# machine a process may answer later than status waits for it.
revive() {
  local tries
  scripts/stack up || fail "$1: up failed"
  for tries in {1..60}; do
    scripts/stack status && return
    sleep 1
  done
  fail "$1: not everything is ready after $tries looks"
}

# Another program may take a port of a server that is down, but not each time.
for tries in 1 2 3; do
  before=$(cat "$native/ports")
  crash rabbitmq
  revive 'RabbitMQ killed'
  crash postgres
  revive 'PostgreSQL killed'
  [[ $(cat "$native/ports") != "$before" ]] || break
  ((tries < 3)) || fail 'servers that were killed came back on other ports'
done
crash gateway
revive 'nginx killed'

# Another address of the broker is nothing but another content of a secret.
scripts/stack stop rabbitmq
sed -i "s/^amqp_port=.*/amqp_port=$(free_ports 1)/" "$native/ports"
revive 'RabbitMQ on another port'
scripts/stack demo

address=$(scripts/stack address)
crash gateway
scripts/stack down
port=${address##*:}
if port_open "${port%/}"; then
  fail 'down left the gateway serving'
fi
