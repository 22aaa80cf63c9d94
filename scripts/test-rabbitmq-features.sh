#!/usr/bin/env bash
# Walks a running stack through confirms, idempotency, delayed retry, dead
# letters and replay, and prints what it sees. RABBITMQ_URL names the broker and
# RECIPIENT_KEY is the services'; those of the stack, native or with Compose, are
# found by themselves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each is given to the program alone: Compose would read them as settings.
gateway=${GATEWAY_URL:-$(scripts/stack address)}
broker=${RABBITMQ_URL:-$(scripts/stack broker)}
key=${RECIPIENT_KEY:-$(scripts/stack secret notification/recipient_key)}
GATEWAY_URL=$gateway RABBITMQ_URL=$broker RECIPIENT_KEY=$key exec go run ./scripts/cmd/features "$@"
