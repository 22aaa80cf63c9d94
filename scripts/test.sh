#!/usr/bin/env bash
# Everything that must hold before a change is merged: scripts/lint.sh beside
# all tests with the race detector, against real servers of their own.
# Arguments go to go test: scripts/test.sh -run Relay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t modules < <(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
mkdir -p .stack/logs

# The checks use the processor while the tests wait for their servers.
nice scripts/lint.sh >.stack/logs/lint.log 2>&1 &
lint=$!

[[ -s .stack/test/env ]] || trap 'scripts/stack test-down' EXIT
addresses=$(scripts/stack test-up)
eval "$addresses"

failed=0
go test -race -timeout 10m "$@" "${modules[@]/%//...}" || failed=1

wait "$lint" || failed=1
cat .stack/logs/lint.log
exit "$failed"
