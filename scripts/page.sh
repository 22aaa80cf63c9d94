#!/usr/bin/env bash
# Runs npm scripts of the page, such as lint and test, with the packages that
# its lock file names: scripts/page.sh lint test
# Without npm, or without a way to its registry, it says so and does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p .stack
lock=$PWD/.stack/npm.lock
cd notification-service/internal/web/app

if ! command -v npm >/dev/null; then
  echo 'skipped: npm is not installed'
  exit
fi
# As engines in package.json.
if ! node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit((major === 20 && minor >= 19) || (major === 22 && minor >= 13) || major >= 24 ? 0 : 1)'; then
  echo "skipped: the page is built with Node.js 20.19, 22.13, 24 or newer, and this is $(node --version)"
  exit
fi
install() {
  # npm's own copy of the lock file is written in another form.
  cmp -s package-lock.json node_modules/.package-lock.installed.json ||
    npm ci --no-audit --no-fund
}
if command -v flock >/dev/null; then
  exec 9>"$lock"
  flock 9
fi
if ! out=$(install 2>&1); then
  if [[ $out =~ EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT ]]; then
    echo 'skipped: the npm registry cannot be reached'
    exit
  fi
  printf '%s\n' "$out"
  exit 1
fi
exec 9>&-
for script in "$@"; do
  npm run --silent "$script"
done
