#!/usr/bin/env bash
# Breaks a stack of its own at random while people use it, and counts. Arguments
# go to the program; scripts/chaos.sh -help prints them. With RABBITMQ_NODES=3 the
# faults of rabbitmq hit one node of a cluster, with POSTGRES_NODES=3 those of
# postgres the primary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
export STACK=native STACK_DIR=${TEST_DATA:-$PWD/.stack}/chaos REPLICAS=2
stack_ports

mkdir -p "$STACK_DIR/bin"
go build -o "$STACK_DIR/bin/chaos" ./scripts/cmd/chaos
case " $* " in
  *' -help '* | *' --help '* | *' -h '*) exec "$STACK_DIR/bin/chaos" -help ;;
esac
# All its people come from one address, and the officials move many reports.
# Nobody looks at the photos, which wait for an official where guests report.
export GATEWAY_LIMITS=off REPORTS_PER_USER=off VOTES_PER_USER=off GUESTS=off
# finish keeps what the servers and services wrote if the run has failed.
finish() {
  if (($?)); then
    rm -rf .stack/logs/chaos
    mkdir -p .stack/logs/chaos
    mv "$STACK_DIR"/logs/*.log "$STACK_DIR"/native/*.log .stack/logs/chaos/ || true
    echo "chaos: the logs are in $PWD/.stack/logs/chaos" >&2
  fi
  scripts/stack clean
  rm -rf "$STACK_DIR"
}
trap finish EXIT
scripts/stack up
"$STACK_DIR/bin/chaos" -gateway "$(scripts/stack address)" -state "$STACK_DIR" "$@"
