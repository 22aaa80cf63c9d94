#!/usr/bin/env bash
# Measures a stack of its own. Arguments go to the program: bench-stack.sh fair -only votes
#
#   fair      what others wait for while one account floods it, with its limits on
#   pressure  what is done beside a held transaction, beside readers, and at a higher rate
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
name=$1
shift
export STACK=native STACK_DIR=$PWD/.stack/$name REPLICAS=1
stack_ports
secrets=$STACK_DIR/native/secrets/migrate
case $name in
  fair)
    # Every client says for whom it asks, and so has an address of its own. The limits
    # are those that a city has by itself.
    export GATEWAY_TRUSTED_PROXY=127.0.0.1 GATEWAY_LIMITS=on GATEWAY_READS=300 GATEWAY_WRITES=20 COMMENTS=on \
      REPORTS_PER_USER=60/1h VOTES_PER_USER=60/1m COMMENTS_PER_USER=20/1h
    set -- -database "$secrets/report_database_url" "$@"
    ;;
  pressure)
    export GATEWAY_LIMITS=off REPORTS_PER_USER=off VOTES_PER_USER=off
    set -- -reports "$secrets/report_database_url" -notifications "$secrets/notification_database_url" "$@"
    ;;
esac
finish() {
  scripts/stack clean
  rm -rf "$STACK_DIR"
}
trap finish EXIT
scripts/stack clean # what an interrupted run has left
scripts/stack up
(cd scripts/bench && GOWORK=off go build -o "$STACK_DIR/bin/$name" "./$name")
"$STACK_DIR/bin/$name" -gateway "$(scripts/stack address)" "$@"
