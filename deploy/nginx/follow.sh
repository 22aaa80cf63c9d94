#!/bin/sh
# Runs nginx and has it look the services' addresses up again when they change: Docker
# gives a container that starts again another one, as after a reboot or docker compose
# stop, and nginx keeps those of its start.
#
#   follow.sh NAME... -- COMMAND...
names=
while [ "$1" != -- ]; do
  names="$names $1"
  shift
done
shift
# shellcheck disable=SC2086 # several names
addresses() { getent ahostsv4 $names | cut -d' ' -f1 | sort -u; }
(
  known=$(addresses)
  while sleep 2; do
    now=$(addresses)
    # A name that is gone is not asked for: nginx would refuse its configuration.
    if [ -n "$now" ] && [ "$now" != "$known" ] && nginx -t -q 2>/dev/null && nginx -s reload; then
      known=$now
    fi
  done
) &
exec "$@"
