#!/usr/bin/env bash
# Answers "does it work?" in minutes: all package tests on a real PostgreSQL and a
# real RabbitMQ of their own, and the end-to-end tests of the main promises.
# scripts/check.sh runs the longer ones, all packages with the race detector, and the
# rest. Arguments go to go test: scripts/test.sh -run Relay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/testing.sh
source scripts/testing.sh
begin test
# Without cgo, as the programs that end-to-end tests start: both share what is compiled.
export CGO_ENABLED=0
list_packages

# Two of those that wait are always under way beside the others, with more tests at
# once than processors. Some read documents and programs that Go does not know of:
# -count=1.
gotest breaking "${breaking[*]}" "${plain[@]}" -short -p 2 -parallel 4 -count=1 "$@" &
breaks=$!
gotest walks ./scripts/e2e "${plain[@]}" -parallel 4 -count=1 -run "$walks" "$@" || failed+=(walks)
gotest packages "${others[*]}" "${plain[@]}" -short -parallel 4 -count=1 "$@" || failed+=(packages)
await breaking "$breaks"
report test
