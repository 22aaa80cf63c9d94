#!/usr/bin/env bash
# Everything that must hold before a change is merged: scripts/lint.sh, all tests
# with the race detector against real servers of their own, and on a stack of its
# own the demo and a fault of every kind. Arguments go to go test: scripts/test.sh -run Relay
#
# The suites that break servers for minutes run again when the code under them
# has changed; Go remembers them otherwise. -count=1 runs everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
mapfile -t modules < <(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
mkdir -p .stack/logs

# demo walks the main job, with two replicas of each service, and again after each
# of the servers was killed.
demo() (
  export STACK=native STACK_DIR=${TEST_DATA:-$PWD/.stack}/demo REPLICAS=2 \
    GATEWAY_PORT GATEWAY_TLS_PORT REPORT_PORT NOTIFICATION_PORT REPORT_OPERATIONS_PORT NOTIFICATION_OPERATIONS_PORT DELIVERY_OPERATIONS_PORT PHOTO_OPERATIONS_PORT MAILBOX_PORT MAILBOX_SMTP_PORT
  mapfile -t ports < <(free_ports 10 11600) # apart from those of the servers, which are chosen later
  GATEWAY_PORT=${ports[0]} GATEWAY_TLS_PORT=${ports[1]} REPORT_PORT=${ports[2]} NOTIFICATION_PORT=${ports[3]}
  REPORT_OPERATIONS_PORT=${ports[4]} NOTIFICATION_OPERATIONS_PORT=${ports[5]}
  DELIVERY_OPERATIONS_PORT=${ports[6]} MAILBOX_PORT=${ports[7]} MAILBOX_SMTP_PORT=${ports[8]}
  PHOTO_OPERATIONS_PORT=${ports[9]}
  trap 'scripts/stack clean; rm -rf "$STACK_DIR"' EXIT
  scripts/stack up && GATEWAY_URL=$(scripts/stack address) MAILBOX_URL=$(scripts/stack mailbox) go run ./scripts/cmd/demo && scripts/test-stack.sh
)

# faults breaks every kind of process once, while people use a stack.
faults() { scripts/chaos.sh -faults 0 -rate 6; }

# The checks use the processor while the tests wait for their servers. They give way
# by half of what nice does by itself: on a busy machine they would be left over.
nice -n 5 scripts/lint.sh >.stack/logs/lint.log 2>&1 &
lint=$!

# What is in the tests' server need not survive the machine. Each of the thousand
# databases that they drop would wait until the disk has all that is in the
# others. Benchmarks start it without this.
export TEST_POSTGRES_SETTINGS='fsync=off full_page_writes=off'
# The files of all servers are in memory where that has room for them: whoever
# writes to a disk that others keep busy stands still.
room() { # 10 GiB
  local free
  free=$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1) && ((free > 10 << 20)) &&
    free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) && ((free > 10 << 20))
}
if room; then
  export TEST_DATA
  TEST_DATA=$(mktemp -d /dev/shm/cityconnect.XXXXXX)
  chmod 755 "$TEST_DATA" # for the servers' own accounts
fi
[[ -s .stack/test/env ]] || stop_servers=1
# What is left in it belongs to servers that go on.
trap '[[ -z ${stop_servers:-} ]] || scripts/stack test-down; [[ -z ${TEST_DATA:-} ]] || rmdir "$TEST_DATA" 2>/dev/null || true' EXIT
addresses=$(scripts/stack test-up)
eval "$addresses"

# Vet is among the checks already, and nobody debugs these programs: leaving
# out both saves a fifth of the time until the first test runs.
flags=(-race -timeout 85m -vet=off -ldflags=-w)
# A program with the race detector sleeps for a second before it exits, if this
# does not say otherwise: each of the hundred packages, and each replica that a
# test stops.
export GORACE="atexit_sleep_ms=20 ${GORACE:-}"
failed=0

# These break servers, and depend on nothing but their own code, which is what Go
# looks at. All others also read documents and programs that it does not know of,
# and the longest of them come first, so that none is left to run alone.
breaking=(
  ./platform/consumer
  ./report-service/internal/relay
  ./platform/rabbit
  ./notification-service/internal/sse
  ./notification-service/cmd/notification-service
  ./platform/delay
  ./platform/schedule
  ./platform/deadletter
  ./notification-service/internal/broadcast
  ./report-service/internal/postgres
)
longest=(./scripts/e2e ./notification-service/cmd/delivery-worker ./report-service/cmd/photo-worker)
mapfile -t others < <(go list "${longest[@]}" "${modules[@]/%//...}" |
  grep -vxFf <(go list "${breaking[@]}") | awk '!seen[$0]++')

# The page's unit tests need no server, and no browser. A test of the others
# builds the page, with the packages that are installed here.
nice scripts/page.sh test >.stack/logs/page.log 2>&1 &
page=$!

: >.stack/logs/chaos.log
: >.stack/logs/tests.log
# The demo and the faults keep stacks of their own busy beside them, in turn.
{ demo >.stack/logs/demo.log 2>&1 && faults >.stack/logs/chaos.log 2>&1; } &
stacks=$!

# tests runs go test, and keeps what it says for the last lines.
tests() { go "$@" 2>&1 | tee -a .stack/logs/tests.log; }
# Whoever breaks servers waits for them most of the time: one package of these is
# always under way beside the others, with more tests at once than processors. The
# others have browsers, of which each takes what it can get.
tests test "${flags[@]}" -p 1 -parallel 6 "$@" "${breaking[@]}" &
breaks=$!
tests test "${flags[@]}" -parallel 4 -count=1 "$@" "${others[@]}" || failed=1
wait "$breaks" || failed=1
GOWORK=off tests -C deploy/helm test -count=1 "$@" ./... || failed=1
wait "$page" || failed=1
cat .stack/logs/page.log
wait "$stacks" || {
  failed=1
  cat .stack/logs/demo.log .stack/logs/chaos.log
}
{ grep -h "^expected=" .stack/logs/demo.log || true; } | tail -n 1
tail -n 1 .stack/logs/chaos.log

wait "$lint" || failed=1
cat .stack/logs/lint.log

# What failed stands last, by name: a runner may keep no more than the end.
((failed)) && {
  echo failed:
  sed 's/\x1b\[[0-9;]*m//g' .stack/logs/{tests,page,demo,chaos,lint}.log |
    grep -E '^ *--- FAIL|^(FAIL|panic:|WARNING: DATA RACE)| FAIL |^This error originated|: FAILED|^(chaos|demo|test-stack): |^stack: .*(not answer|is taken)' | sort -u
}
exit "$failed"
