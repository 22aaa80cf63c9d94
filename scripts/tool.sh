#!/usr/bin/env bash
# Runs one of the programs pinned in scripts/tools/go.mod in the current folder:
# scripts/tool.sh golangci-lint run. Built at the first use, cached by go.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/tools" && pwd)
program=$(cd "$tools" && GOWORK=off go tool -n "$1")
exec "$program" "${@:2}"
