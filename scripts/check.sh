#!/usr/bin/env bash
# What must hold before a change is merged, besides scripts/test.sh, which runs
# first: all packages with the race detector, linters, the page's own tests, all
# browser tests, the chart, the owner's three scripts and a crash of each server on a
# stack with two replicas, a fault of every kind while people use the city, and other
# versions of the servers. With CHECK_UNTIL (seconds since 1970) it begins with no part that
# would go beyond, and names what it leaves over.
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
# what is left of the first 45 minutes: a check has an end, and skips the rest.
servers() {
  local left=$((45 - SECONDS / 60))
  SERVERS=turn STEPS='demo faults log features' MINUTES=$((left > 20 ? 20 : left)) IDLE=60 scripts/test-server-versions.sh
}

# twice does once more what has failed, as gotest does with a test, unless it counted a
# broken promise: twice NAME COMMAND…
twice() {
  local name=$1
  shift
  "$@" && return
  ! grep -qE '(lost|doubled|errors_500)=[1-9]|not every accepted' "$logs/$name.log" || return 1
  "$@" && echo "$name: 2 runs, 1 failure" >"$logs/$name.flaky"
}

# stacks runs these in turn beside the tests: both wait most of the time.
stacks() {
  local code=0
  step faults twice faults faults || code=1
  step servers servers || code=1
  return "$code"
}

# room reports whether a part of so many minutes ends in time: room MINUTES PART
room() {
  (((${CHECK_UNTIL:-9999999999} - EPOCHSECONDS) / 60 >= $1)) || {
    left_over+=("$2")
    return 1
  }
}
left_over=()

# end_to_end runs what the walks of `make test` left of the end-to-end tests, in four parts.
# Another one is the first each day, so that none is left over for long.
end_to_end() {
  local tests part run i
  mapfile -t tests < <(grep -rhoE --include='*_test.go' '^func Test\w+\(t ' scripts/e2e | sed 's/^func \(.*\)(t $/\1/' | grep -vE "$walks" | sort -u)
  for ((part = $(date +%-j) % 4, i = 0; i < 4; i++, part = (part + 1) % 4)); do
    room 20 "end-to-end-$part" || continue
    run=$(printf '%s\n' "${tests[@]}" | awk -v part="$part" 'NR % 4 == part' | paste -sd '|')
    CGO_ENABLED=0 gotest "end-to-end-$part" './scripts/e2e/...' "${plain[@]}" -parallel 4 -count=1 -run "^($run)\$" || failed+=("end-to-end-$part")
  done
}

# The page's unit tests need neither server nor browser.
page() { scripts/page.sh test; }

# helm tests the chart, which is not part of the workspace.
helm() { GOWORK=off go -C deploy/helm test -count=1 ./...; }

# Each of these three wants all processors. Beside the browser tests they took as long, and
# starved them: answers came after minutes.
step page page || failed+=(page)
step lint scripts/lint.sh || failed+=(lint)
step components twice components components || failed+=(components)

stacks &
stacks=$!
end_to_end
# All packages again: with the race detector, with the tests that take minutes, and
# with the programs that `make test` does not install.
list_packages
room 20 breaking && { gotest breaking "${breaking[*]}" "${race[@]}" -p 1 -parallel 4 -count=1 || failed+=(breaking); }
room 22 packages && { gotest packages "${others[*]}" "${race[@]}" -parallel 4 -count=1 -skip "$counting" || failed+=(packages); }
step helm helm || failed+=(helm)
await stacks "$stacks"
grep -h '^expected=' "$logs/components.log" | tail -n 1 || true
tail -n 1 "$logs/faults.log" || true
sed -n '/^release /,$p' "$logs/servers.log" || true
cat "$logs/lint.log"
((${#left_over[@]} == 0)) || echo "left over, since the check ends before: ${left_over[*]}"
scripts/weight.sh || true # the linters have said it
report check
