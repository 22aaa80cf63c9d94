#!/usr/bin/env bash
# Walks a running stack through confirms, idempotency, delayed retry, dead
# letters and replay, and prints what it sees. RABBITMQ_URL names the broker;
# the native stack's own is found by itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
state=${STACK_DIR:-$PWD/.stack}

secret=$state/native/secrets/notification/rabbitmq_url
if [[ -z ${RABBITMQ_URL:-} && -r $secret ]]; then
  RABBITMQ_URL=$(<"$secret")
fi
export RABBITMQ_URL=${RABBITMQ_URL:-}
GATEWAY_URL=${GATEWAY_URL:-$(scripts/stack address)} exec go run ./scripts/cmd/features "$@"
