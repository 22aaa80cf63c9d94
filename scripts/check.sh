#!/usr/bin/env bash
# What must hold before a change is merged, besides scripts/test.sh, which runs
# first: all packages with the race detector, linters, the page's own tests, all
# browser tests, the chart, the owner's three scripts and a crash of each server on a
# stack with two replicas, a fault of every kind while people use the city, and other
# versions of the servers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/testing.sh
source scripts/testing.sh
begin check

# components walks the main job on two replicas of everything, puts them under load,
# and crashes the servers below them one by one.
components() (
  export STACK=native STACK_DIR=${TEST_DATA:-$PWD/.stack}/components REPLICAS=2
  stack_ports
  trap 'scripts/stack clean; rm -rf "$STACK_DIR"' EXIT
  scripts/test-all-components.sh &&
    scripts/test-extreme-load-2.5m.sh -reports-per-user 1 &&
    scripts/test-stack.sh
)

# faults breaks every kind of process once, while people use a stack.
faults() { scripts/chaos.sh -faults 0 -rate 6; }

# servers tries RabbitMQ and PostgreSQL of another Debian release, one a day in turn, in
# what is left of the first 40 minutes: a check has an end, and skips the rest.
servers() {
  local left=$((40 - SECONDS / 60))
  SERVERS=turn STEPS='demo faults log features' MINUTES=$((left > 20 ? 20 : left)) IDLE=60 scripts/test-server-versions.sh
}

# stacks runs these in turn: each keeps a stack of its own busy.
stacks() {
  local code=0
  step components components || code=1
  step faults faults || code=1
  step servers servers || code=1
  return "$code"
}

# The page's unit tests need neither server nor browser.
page() { scripts/page.sh test; }

# helm tests the chart, which is not part of the workspace.
helm() { GOWORK=off go -C deploy/helm test -count=1 ./...; }

stacks &
stacks=$!
# The linters give way: on a busy machine they would otherwise be left over.
{
  code=0
  step page page || code=1
  step lint nice -n 5 scripts/lint.sh || code=1
  exit "$code"
} &
lint=$!

# What the walks of `make test` left of the end-to-end tests.
CGO_ENABLED=0 gotest end-to-end './scripts/e2e/...' "${plain[@]}" -parallel 4 -count=1 -skip "$walks" || failed+=(end-to-end)
# All packages again: with the race detector, with the tests that take minutes, and
# with the programs that `make test` does not install.
list_packages
gotest breaking "${breaking[*]}" "${race[@]}" -p 1 -parallel 4 -count=1 || failed+=(breaking)
gotest packages "${others[*]}" "${race[@]}" -parallel 4 -count=1 -skip "$counting" || failed+=(packages)
step helm helm || failed+=(helm)
await stacks "$stacks"
await lint "$lint"
grep -h '^expected=' "$logs/components.log" | tail -n 1 || true
tail -n 1 "$logs/faults.log" || true
sed -n '/^release /,$p' "$logs/servers.log" || true
cat "$logs/lint.log"
scripts/weight.sh || true # the linters have said it
report check
