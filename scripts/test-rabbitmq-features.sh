#!/usr/bin/env bash
# Walks a running stack through confirms, idempotency, delayed retry, dead
# letters and replay, and prints what it sees. RABBITMQ_URL names the broker and
# RECIPIENT_KEY is the services'; the native stack's own are found by themselves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
state=${STACK_DIR:-$PWD/.stack}

for secret in "$state"/native/secrets/{rabbitmq/rabbitmq_url,notification/recipient_key}; do
  name=${secret##*/} name=${name^^}
  if [[ -z ${!name:-} && -r $secret ]]; then
    printf -v "$name" %s "$(<"$secret")"
  fi
  export "$name=${!name:-}"
done
GATEWAY_URL=${GATEWAY_URL:-$(scripts/stack address)} exec go run ./scripts/cmd/features "$@"
