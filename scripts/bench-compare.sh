#!/usr/bin/env bash
# Measures two revisions in turn and prints their ratios: bench-compare.sh BASE [HEAD]
# Without HEAD it is the tree as it is. What is measured: what report-service
# takes in over HTTP, and every Go benchmark that both revisions have. PASSES
# (6) says how often each side has its turn, LENGTH (2s) how long.
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

# measure gives one side a turn.
measure() {
  "$work/ingest" -raw -passes 1 -length "${LENGTH:-2s}" -service "$work/$1/report-service" -migrate "$work/$1/migrate" >>"$work/$1.txt"
  local packages
  mapfile -t packages < <(comm -12 <(benchmarks "$base") <(benchmarks "$head"))
  ((${#packages[@]} == 0)) || (cd "${!1}" && go test -run '^$' -bench . "${packages[@]/#/./}") >>"$work/$1.txt"
}

for pass in $(seq "${PASSES:-6}"); do
  echo "pass $pass of ${PASSES:-6}" >&2
  measure base
  measure head
done
(cd "$work" && "$head/scripts/tool.sh" benchstat base.txt head.txt)
