#!/usr/bin/env bash
# Measures what others wait for while one account floods a stack of its own, whose
# limits are on. Arguments go to the program: bench-fair.sh -only votes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
export STACK=native STACK_DIR=$PWD/.stack/fair REPLICAS=1
stack_ports

# Every client says for whom it asks, and so has an address of its own. The limits are
# those that a city has by itself.
export GATEWAY_TRUSTED_PROXY=127.0.0.1 GATEWAY_LIMITS=on GATEWAY_READS=300 GATEWAY_WRITES=20 COMMENTS=on \
  REPORTS_PER_USER=60/1h VOTES_PER_USER=60/1m COMMENTS_PER_USER=20/1h
finish() {
  scripts/stack clean
  rm -rf "$STACK_DIR"
}
trap finish EXIT
scripts/stack clean # what an interrupted run has left
scripts/stack up
(cd scripts/bench && GOWORK=off go build -o "$STACK_DIR/bin/fair" ./fair)
"$STACK_DIR/bin/fair" -gateway "$(scripts/stack address)" \
  -database "$STACK_DIR/native/secrets/migrate/report_database_url" "$@"
