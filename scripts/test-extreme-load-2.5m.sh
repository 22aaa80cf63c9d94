#!/usr/bin/env bash
# Two and a half million events within half an hour, on a thousand screens: the
# whole stack under the load that it is meant for, with an audit of every event.
# Arguments go to the load test, later ones win:
#   scripts/test-extreme-load-2.5m.sh -reports-per-user 10   # 72 seconds of it
#   scripts/test-extreme-load-2.5m.sh -profile insane        # more than it takes
#   scripts/test-extreme-load-2.5m.sh -insane -limit 10m     # ten times everything, for ten minutes (default 45)
# LOADTEST_OUT names the report's folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec scripts/load.sh -profile 2.5m "$@"
