#!/usr/bin/env bash
# Measures the page beside that of another revision: bench-page.sh BASE
# A phone's first visit on a processor slowed down four times and over a slow 4G,
# what it loads, and what a minute with a hundred new reports costs. Both pages
# have today's services behind them, and are measured in turn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($# == 1)) || {
  echo 'usage: bench-page.sh BASE' >&2
  exit 2
}
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
git archive "$1" notification-service/internal/web/dist | tar -x -C "$base"
addresses=$(scripts/stack test-up)
eval "$addresses"
PAGE_BENCH_BASE=$base/notification-service/internal/web/dist \
  go test -count=1 -timeout 30m -run '^TestPageFigures$' -v ./scripts/e2e | sed -n 's/^ *page_weight_test.go:[0-9]*: //p'
