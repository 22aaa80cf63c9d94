#!/usr/bin/env bash
# Measures two revisions in turn and prints their ratios: bench-compare.sh BASE [HEAD]
# Without HEAD it is the tree as it is. What is measured: what report-service
# takes in over HTTP, how fast officials read their queue, every Go benchmark that both revisions have, and the relay,
# the consumer and the hub of the live streams. PASSES (6) says how often each
# side has its turn; over HTTP it is twelve times as often, for half a second
# each (LENGTH): short turns meet the same disk and the same neighbours. ONLY
# names a part: ingest, go (the Go benchmarks), relay, consumer or sse. The
# consumer has four times as many turns as the relay and the hub, of 4,000 messages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($# == 1 || $# == 2)) || {
  echo 'usage: bench-compare.sh BASE [HEAD]' >&2
  exit 2
}
work=$(mktemp -d)
base=$work/trees/base head=$PWD

cleanup() {
  local tree
  for tree in "$work"/trees/*; do
    git worktree remove --force "$tree"
  done
  rm -rf "$work"
}
trap cleanup EXIT

mkdir "$work/trees"
git worktree add --quiet --detach "$base" "$1"
if (($# == 2)); then
  head=$work/trees/head
  git worktree add --quiet --detach "$head" "$2"
fi
for side in base head; do
  mkdir -p "$work/$side"
  for part in report-service/bench/relay notification-service/bench/consumer notification-service/bench/sse; do
    [[ ! -d ${!side}/$part ]] || (cd "${!side}" && go build -o "$work/$side/" "./$part")
  done
  (cd "${!side}" && go build -o "$work/$side/" ./report-service/cmd/report-service ./migrations/cmd/migrate)
done
# The instrument is the same for both: today's.
(cd scripts/bench && GOWORK=off go build -o "$work/ingest" ./ingest)
addresses=$(scripts/stack test-up)
eval "$addresses"

# benchmarks prints the folders of a tree's packages that have benchmarks.
benchmarks() {
  (cd "$1" && grep -rlE '^func Benchmark' --include='*_test.go' --exclude-dir=node_modules \
    report-service notification-service platform 2>/dev/null | xargs -r -n 1 dirname | sort -u)
}

wanted() { [[ ${ONLY:-$1} == "$1" ]]; }

if wanted ingest; then
  "$work/ingest" -base "$work/base/report-service" -base-migrate "$work/base/migrate" \
    -service "$work/head/report-service" -migrate "$work/head/migrate" \
    -passes $((12 * ${PASSES:-6} + 1)) -length "${LENGTH:-500ms}"
fi
mapfile -t packages < <(comm -12 <(benchmarks "$base") <(benchmarks "$head"))
if wanted go && ((${#packages[@]})); then
  for pass in $(seq "${PASSES:-6}"); do
    echo "pass $pass of ${PASSES:-6}" >&2
    for side in base head; do
      (cd "${!side}" && go test -run '^$' -bench . "${packages[@]/#/./}") >>"$work/$side.txt"
    done
  done
  (cd "$work" && "$head/scripts/tool.sh" benchstat base.txt head.txt)
fi
for part in relay consumer sse; do
  wanted "$part" || continue
  if [[ -x $work/base/$part ]]; then
    options=(-base "$work/base/$part" -passes "${PASSES:-6}")
    [[ $part != consumer ]] || options+=(-base-migrate "$work/base/migrate" -passes $((4 * ${PASSES:-6})) -messages 4000 -failing 4000)
    (cd "$head/scripts/bench" && GOWORK=off go run "./$part" "${options[@]}")
  else
    echo "$part: $1 has no program of its own for it" >&2
  fi
done
