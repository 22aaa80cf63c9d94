#!/usr/bin/env bash
# Runs one of the programs pinned in scripts/tools/go.mod in the current folder:
# scripts/tool.sh golangci-lint run. Built at the first use, cached by go.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/tools" && pwd)
# A program with a folder of its own there is pinned apart from the others.
[[ ! -e $tools/$1/go.mod ]] || tools=$tools/$1
# As the stack's own programs are built: it takes a quarter less.
program=$(cd "$tools" && GOWORK=off CGO_ENABLED=0 GOFLAGS="'-ldflags=-s -w' -gcflags=all=-dwarf=false" go tool -n "$1")
exec "$program" "${@:2}"
