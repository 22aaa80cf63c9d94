#!/usr/bin/env bash
# Answers "does it work?" in minutes: all package tests with the race detector, on a
# real PostgreSQL and a real RabbitMQ of their own, and the end-to-end tests of the
# main promises. scripts/check.sh runs the rest. Arguments go to go test:
# scripts/test.sh -run Relay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/testing.sh
source scripts/testing.sh
begin test

# These break servers, and wait for them most of the time: one of them is always
# under way beside the others, with more tests at once than processors.
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
# The longest of the others come first, so that none is left to run alone.
longest=(./notification-service/cmd/delivery-worker ./report-service/cmd/photo-worker)
mapfile -t others < <(go list "${longest[@]}" "${modules[@]/%//...}" | grep -v '/scripts/e2e' |
  grep -vxFf <(go list "${breaking[@]}") | awk '!seen[$0]++')

gotest breaking "${breaking[*]}" "${race[@]}" -short -p 1 -parallel 6 "$@" &
breaks=$!
CGO_ENABLED=0 gotest walks ./scripts/e2e "${plain[@]}" -parallel 4 -count=1 -run "$walks" "$@" || failed+=(walks)
# Some read documents and programs that Go does not know of: -count=1.
gotest packages "${others[*]}" "${race[@]}" -short -parallel 4 -count=1 "$@" || failed+=(packages)
await breaking "$breaks"
report test
