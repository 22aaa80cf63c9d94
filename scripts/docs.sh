#!/usr/bin/env bash
# Runs an npm script of the documentation site, build or serve, with the packages that
# its lock file names: scripts/docs.sh build makes bin/docs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/docs-site"
if ! command -v npm >/dev/null; then
  echo 'docs: npm is not installed; Node.js 20 or newer has it' >&2
  exit 1
fi
# Packages run no scripts when they are installed: none of these needs one.
cmp -s package-lock.json node_modules/.package-lock.installed.json || {
  npm ci --no-audit --no-fund --ignore-scripts
  cp package-lock.json node_modules/.package-lock.installed.json
}
go run ../cmd/references ../../docs ../../docs/api
exec npm run --silent "$1"
