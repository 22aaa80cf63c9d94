#!/usr/bin/env bash
# Everything that runs, once: the stack with each of its processes, the main job
# on sample reports, the configuration of the queues and what they promise, and half
# a minute of load with an audit of every event. Arguments go to the load test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo '== the stack' >&2
scripts/stack up
# On a busy machine a process may answer later than status waits for it.
for tries in {1..60}; do
  ! scripts/stack status || break
  ((tries < 60)) || exit 1
  sleep 1
done
echo '== the main job' >&2
scripts/stack demo -digest
echo '== queues' >&2
scripts/test-rabbitmq-features.sh
echo '== load' >&2
scripts/load.sh "$@"
