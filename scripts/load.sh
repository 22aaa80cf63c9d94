#!/usr/bin/env bash
# Brings the stack up and puts it under load. Arguments go to the load test;
# scripts/load.sh -help prints them. With KILL=SECONDS, the last replica of each
# service is killed that long after the start, and started again: that wants
# REPLICAS=2 or more, and a native stack.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
state=${STACK_DIR:-$PWD/.stack}
out=${LOADTEST_OUT:-$state/load/$(date +%Y%m%d-%H%M%S)}

mkdir -p "$state/bin"
(cd scripts/cmd/loadtest && GOWORK=off go build -o "$state/bin/" .)
case " $* " in
  *' -help '* | *' --help '* | *' -h '*) exec "$state/bin/loadtest" -help ;;
esac
# A load comes from one address, and from people who act faster than people do.
# Its incidents lie in other cities.
export GATEWAY_LIMITS=off REPORTS_PER_USER=off VOTES_PER_USER=off MAP_BOUNDS=
scripts/stack up

# kill_replicas ends one replica of each service as a crash would, and brings
# them back.
kill_replicas() {
  sleep "$KILL"
  local service pid
  for service in report notification; do
    read -r pid <"$state/native/$service-$REPLICAS.pid"
    echo "load: killing $service-$REPLICAS" >&2
    kill -KILL "$pid"
  done
  sleep 5
  scripts/stack up
}

options=(-stack "$state" -out "$out")
killer=''
if [[ -n ${KILL:-} ]]; then
  ((${REPLICAS:-1} > 1)) || {
    echo 'load: KILL wants REPLICAS=2 or more' >&2
    exit 2
  }
  kill_replicas &
  killer=$!
fi
status=0
"$state/bin/loadtest" "${options[@]}" "$@" || status=$?
[[ -z $killer ]] || wait "$killer" || status=1
echo "load: the report is in $out" >&2
exit "$status"
