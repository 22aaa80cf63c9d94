#!/usr/bin/env bash
# For work on the sources: the running stack, the page with hot reload before it, and
# programs that are built and started again when something in them changes. A program that
# does not compile leaves the one before running. Ctrl-C ends it; the stack stays up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $(scripts/stack kind) == native ]] || {
  echo 'dev: needs the native stack: STACK=native make dev' >&2
  exit 1
}
scripts/stack up
scripts/page.sh types

# What `scripts/stack up` compiles; it restarts only programs that differ.
sources=(platform migrations report-service notification-service scripts/cmd scripts/internal go.work docs/openapi)
seen=${STACK_DIR:-.stack}/dev.seen
touch "$seen"
while sleep 1; do
  changed=$(find "${sources[@]}" -path '*/web/app' -prune -o -type f -newer "$seen" -print -quit)
  [[ -n $changed ]] || continue
  touch "$seen"
  echo "dev: $changed has changed" >&2
  scripts/stack up || echo 'dev: the programs of before go on' >&2
done &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT

export CITYCONNECT_URL
CITYCONNECT_URL=$(scripts/stack address)
cd notification-service/internal/web/app
npx vite "$@"
