#!/usr/bin/env bash
# Tries RabbitMQ and PostgreSQL of other Debian releases with what depends on them: the
# demo, a fault of every kind under load, what the broker's log says of refused
# operations, the features script, the end-to-end tests of what versions do differently,
# and the packages that talk to either server.
#
#   SERVERS=debian12|debian13|newest   one or more; those that are not this machine's,
#                                      or with `turn` one of these, by the day
#   STEPS='demo faults log features promises packages'
#   PACKAGES='./platform/rabbit'       instead of all, to repeat what failed
#   MINUTES=180                        for all of it; what is not done then is skipped
#
# Each release becomes a root below .stack/servers once, of about 900 MB, into which the
# checkout and Go are mounted. Whatever cannot be done for lack of a right, a program or
# the archive is named and skipped, and does not fail the run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh

suite_of() {
  case $1 in
    debian12) echo bookworm 15 ;;
    debian13) echo trixie 17 ;;
    newest) echo sid 18 ;;
    *) echo "test-servers: SERVERS must be debian12, debian13 or newest, not '$1'" >&2 && exit 2 ;;
  esac
}
steps=${STEPS:-demo faults log features promises packages}
home=$PWD/.stack/servers
results=$home/results
# Long outages, losses that were confirmed, rights, dumps and base backups.
promises='^(TestLongOutageMakesNoDeadLetter|TestConfirmedAndLostIsNamed|TestLeastPrivilege|TestVirtualHostOfACluster|TestDatabasesWithoutASuperuser|TestRestoreAtDifferentMoments|TestRecoverToDifferentMoments)$'
idle=${IDLE:-300} # seconds after the demo until the broker's log is read

# versions prints the servers that this root has.
versions() { dpkg-query -W -f '${Package} ${Version}\n' rabbitmq-server 'postgresql-[0-9]*' 2>/dev/null | sed -E '/^postgresql-[0-9]+ ./!{/^rabbitmq/!d}; s/-server//; s/postgresql-[0-9]+/postgresql/; s/[-+][^ ]*$//' | sort -r | paste -sd ' '; }

# packages prints those whose tests talk to a server, but the end-to-end ones.
packages() { grep -rlE 'platform/testing/rabbittest|migrations/pgtest' --include=*_test.go ./*/ | xargs -n 1 dirname | grep -v '^./scripts' | sort -u; }

# step runs a command with its output in a log and notes the result: step NAME COMMAND…
step() {
  local name=$1 began=$SECONDS result=passed
  shift
  [[ " $steps " == *" $name "* ]] || return 0
  "$@" >"$logs/$name.log" 2>&1 || result=FAILED
  [[ $result == passed ]] || tail -n 40 "$logs/$name.log"
  printf '%s|%s|%s|%s|%ss\n' "$release" "$servers" "$name" "$result" $((SECONDS - began)) | tee -a "$results"
}

# tests runs tests on servers of their own: tests FLAG… PACKAGE…
tests() (
  eval "$(scripts/stack test-up servers)"
  trap 'scripts/stack test-down' EXIT
  go test -short -vet=off -p 1 -parallel 4 -timeout 60m "$@"
)

# broker_log counts what the broker has refused, and what it says is deprecated; that of
# the management API is the broker's own. While the programs start they look for queues
# that others are about to declare; after the demo they have all of them.
broker_log() {
  local rest=$((idle + demo_ended - SECONDS))
  ((rest <= 0)) || sleep "$rest"
  awk -v lines="$demo_lines" '
    NR <= lines && /channel exception.*not_found/ { early++; next }
    /access_refused/ { refused++ } /access denied/ { denied++ } /channel exception/ { exceptions++ }
    /Deprecated features: `/ && !/management_metrics_collection/ { deprecated++; print }
    /access_refused|access denied|channel exception/ { print }
    END { printf "lines=%d access_refused=%d access_denied=%d channel_exceptions=%d deprecated=%d looked_too_early=%d\n", NR, refused, denied, exceptions, deprecated, early
      exit refused + denied + exceptions + deprecated > 0 }' "$STACK_DIR/native/rabbitmq.log"
}

# try takes all steps on the servers of this root.
try() {
  release=$1 servers=$(versions) logs=$home/$1.logs
  mkdir -p "$logs"
  export CGO_ENABLED=0 STACK=native STACK_DIR=$home/$1.stack TEST_DATA='' GATEWAY_LIMITS=off
  stack_ports
  trap 'scripts/stack clean; rm -rf "$STACK_DIR"' EXIT
  step demo scripts/stack demo
  demo_ended=$SECONDS demo_lines=0
  [[ ! -e $STACK_DIR/native/rabbitmq.log ]] || demo_lines=$(wc -l <"$STACK_DIR/native/rabbitmq.log")
  TEST_DATA=$STACK_DIR step faults scripts/chaos.sh -faults 0 -rate 6
  step log broker_log
  step features scripts/test-rabbitmq-features.sh
  scripts/stack clean
  step promises tests -v -run "$promises" ./scripts/e2e
  read -ra packages <<<"${PACKAGES:-$(packages | paste -sd ' ')}"
  step packages tests "${packages[@]}"
}

# within runs a command for as long as there is time.
within() { timeout -k 30 $((deadline > SECONDS ? deadline - SECONDS : 1)) "$@"; }

# make_root makes the root of a release, unless it is there.
make_root() {
  local root=$home/$1 suite postgres
  [[ ! -e $root.made ]] || return 0
  read -r suite postgres < <(suite_of "$1")
  echo "test-servers: making a root of Debian $suite in $root, which takes some minutes"
  rm -rf "$root"
  # Mounts that it leaves behind when it is cut off end with it.
  within unshare --mount --propagation private debootstrap --variant=minbase \
    --include="rabbitmq-server,postgresql-$postgres,nginx-light,git,make,curl,jq,openssl,procps,ca-certificates" \
    "$suite" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || return 1
  touch "$root.made"
}

# enter runs this script in a root, with mounts that end with it.
enter() {
  local root=$home/$1
  shift
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --propagation private bash -euo pipefail -c '
    root=$1 checkout=$2
    mount --rbind /dev "$root/dev"
    for folder in /proc /sys "$checkout" "$(git rev-parse --path-format=absolute --git-common-dir)" \
      "$(go env GOROOT)" "$(go env GOMODCACHE)" "$(go env GOCACHE)" /etc/ssl/certs; do
      mkdir -p "$folder" "$root$folder"
      mount --bind "$folder" "$root$folder"
    done
    mount -t tmpfs tmpfs "$root/run"
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    exec chroot "$root" "$checkout/scripts/test-server-versions.sh" "${@:3}"' _ "$root" "$PWD" "$@"
}

if [[ ${1:-} == inside ]]; then
  try "$2"
  exit
fi

own=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")
case ${SERVERS:-} in
  '' | turn)
    wanted=()
    for release in debian12 debian13 newest; do
      [[ $(suite_of "$release") == "$own "* ]] || wanted+=("$release")
    done
    [[ -z ${SERVERS:-} ]] || wanted=("${wanted[$(($(date +%s) / 86400 % ${#wanted[@]}))]}")
    ;;
  *) read -ra wanted <<<"${SERVERS//[|,]/ }" ;;
esac
mkdir -p "$home"
: >"$results"
deadline=$((SECONDS + ${MINUTES:-180} * 60))
for release in "${wanted[@]}"; do
  read -r suite _ < <(suite_of "$release")
  skip=''
  if ((SECONDS >= deadline)); then
    skip='no time is left'
  elif [[ $suite == "$own" ]]; then
    : # its servers are here
  elif [[ $(id -u) != 0 ]] || ! unshare --mount true 2>/dev/null; then
    skip='a root of another release takes the rights of root'
  elif ! command -v debootstrap >/dev/null && ! { within apt-get update && within apt-get install -y --no-install-recommends debootstrap; } >"$home/apt.log" 2>&1; then
    skip='debootstrap is not installed, and cannot be'
  elif ! make_root "$release"; then
    skip="the archive cannot be reached, or took too long: $home/$release.log"
  fi
  if [[ -n $skip ]]; then
    printf '%s||%s|skipped: %s|\n' "$release" "$steps" "$skip" | tee -a "$results"
    continue
  fi
  code=0
  # Whatever ends this ends the group that timeout makes, which then cleans up.
  run=(timeout -k 180 $((deadline > SECONDS ? deadline - SECONDS : 1)))
  if [[ $suite == "$own" ]]; then
    "${run[@]}" scripts/test-server-versions.sh inside "$release" &
  else
    export -f enter
    home=$home "${run[@]}" bash -c 'enter "$@"' _ "$release" inside "$release" &
  fi
  running=$!
  trap 'kill "$running"; wait "$running"; exit 1' INT TERM
  wait "$running" || code=$?
  trap - INT TERM
  case $code in
    0) ;;
    124 | 137) printf '%s|||skipped the rest: the time was over|\n' "$release" | tee -a "$results" ;;
    *) printf '%s|||FAILED: exit code %s|\n' "$release" "$code" | tee -a "$results" ;;
  esac
done
echo
{ echo 'release|servers|step|result|time' && cat "$results"; } | column -t -s '|'
! grep -q FAILED "$results"
