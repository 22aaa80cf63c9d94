#!/usr/bin/env bash
# Runs the benchmarks in scripts/bench and then the load test, or those whose
# names are given: bench.sh ingest load. Several end with a table of their last
# lines; one ends with its own, a line of name=value pairs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=("$@")
if (($# == 0)); then
  names=(channels consumer fair ingest relay sse streams load)
fi
go build -o bin/ ./report-service/cmd/... ./notification-service/cmd/notification-service ./migrations/cmd/migrate
for name in "${names[@]}"; do
  case $name in
    fair | pressure | load) ;; # have a whole stack
    *)
      addresses=$(scripts/stack test-up)
      eval "$addresses"
      break
      ;;
  esac
done

# bench runs one of them; they find the programs in ../../bin.
bench() {
  case $1 in
    load) scripts/load.sh ;;
    fair | pressure) scripts/bench-stack.sh "$1" ;;
    *) (cd scripts/bench && GOWORK=off go run "./$1") ;;
  esac
}

table='' failed=0
for name in "${names[@]}"; do
  echo "== $name" >&2
  log=$(mktemp)
  bench "$name" | tee "$log" || failed=1
  table+=$(printf '%-12s %s' "$name" "$(tail -n 1 "$log")")$'\n'
  rm -f "$log"
done
if (($# != 1)); then
  printf '\n%s' "$table"
fi
exit "$failed"
