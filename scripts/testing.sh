# shellcheck shell=bash disable=SC2034 # scripts that source this use its variables
# What scripts/test.sh and scripts/check.sh share: the tests' servers, the runner,
# and the last lines. Source it from the repository's top.

# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh
# shellcheck source=scripts/test-servers.sh
source scripts/test-servers.sh

logs=$PWD/.stack/logs
flaky_list=$PWD/.stack/flaky.txt
mapfile -t modules < <(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
failed=()

# walks are the end-to-end tests that answer "does it work?": the main promises
# through kills of each process, privacy, and the page for each role.
walks='^(TestReportServiceKilled.*|TestNotificationServiceKilledMidStream|TestBrokerStopped|TestPrimaryIsKilled|TestMessageTwiceHasOneEffect|TestMalformedMessageIsDeadLettered|TestRollbackLeavesNeitherRowNorEvent|TestConcurrentVotes|TestPrivacyCanary|TestErasureCanary|TestTwoWorldsLookTheSame|TestOtherSystemLearnsOfEveryChange|TestLinksOfMails|TestDemo|TestAPIFuzz|TestPageReportAndVote|TestPageAnonymous|TestPageStatusLive|TestPageWorkbenchByKeyboard|TestPageReplaysDeadLetter)$'

# begin starts the tests' servers, unless they run: begin test|check
begin() {
  mkdir -p "$logs"
  : >"$flaky_list"
  rm -f "$logs"/*.tests.json "$logs"/*.flaky "$logs"/page.log "$logs/failed_steps"
  # What is in the tests' servers need not survive the machine. Each of the thousand
  # databases that they drop would wait until the disk has all that is in the
  # others, and a quorum queue whose first write waits for seconds is refused.
  # Benchmarks start them without this.
  export TEST_UNSYNCED=1
  # The files of all servers are in memory where that has room for them: on a disk
  # that others keep busy, a server stands still.
  if memory_has_room; then
    export TEST_DATA
    TEST_DATA=$(mktemp -d /dev/shm/cityconnect.XXXXXX)
    chmod 755 "$TEST_DATA" # for the servers' own accounts
  fi
  trap finish EXIT
  scripts/tool.sh gotestsum --version >/dev/null # two that build it at once find its file busy
  take_servers "$1"
  mend_broker 8>&- &
  mender=$!
  # A program with the race detector sleeps for a second before it exits unless this
  # says otherwise: each of the hundred packages, and each replica that a test stops.
  export GORACE="atexit_sleep_ms=20 ${GORACE:-}"
}

memory_has_room() { # 6 GiB
  local free
  free=$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1) && ((free > 6 << 20)) &&
    free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) && ((free > 6 << 20))
}

# mend_broker starts the tests' broker again when it refuses each new quorum queue, as
# one does for good whose log of them has failed: else all tests after it would fail.
# Tests take that as any other broker's end.
mend_broker() {
  local refusals=0 queue=$TEST_RABBITMQ_MANAGEMENT_URL/api/queues/%2F/tests.probe
  while sleep 10 >/dev/null 2>&1; do # it outlives this by seconds
    case $(curl -s -m 30 -o /dev/null -w '%{http_code}' -X PUT -d '{"durable":true,"arguments":{"x-queue-type":"quorum"}}' "$queue") in
      4* | 5*)
        ((++refusals < 3)) && continue
        refusals=0
        scripts/stack test-mend || true
        ;;
      20*) refusals=0 ;;
    esac
    curl -s -m 30 -o /dev/null -X DELETE "$queue" || true
  done
}

# finish stops the servers, unless they are somebody else's. The files of others stay.
finish() {
  [[ -z ${mender:-} ]] || kill "$mender" 2>/dev/null || true
  leave_servers
  [[ -z ${TEST_DATA:-} ]] || rmdir "$TEST_DATA" 2>/dev/null || true
}

# gotest runs tests once, and those that failed once more: one that then passes is
# flaky, and does not fail the run. gotest NAME PACKAGES [FLAG…]
gotest() {
  local name=$1 packages=$2
  shift 2
  scripts/tool.sh gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped \
    --rerun-fails=1 --rerun-fails-max-failures=50 --rerun-fails-report "$logs/$name.flaky" --jsonfile "$logs/$name.tests.json" \
    --packages "$packages" -- "$@"
}

# These break servers, and wait for them most of the time.
breaking=(
  ./platform/consumer
  ./report-service/internal/relay
  ./platform/rabbit
  ./notification-service/internal/sse
  ./notification-service/cmd/notification-service
  ./platform/delay
  ./platform/schedule
  ./platform/deadletter
  ./notification-service/internal/broadcast
  ./report-service/internal/postgres
)
# list_packages sets others to all other packages with tests but the end-to-end ones.
# The longest come first, so that none is left to run alone.
list_packages() {
  local longest=(./notification-service/cmd/delivery-worker ./report-service/cmd/photo-worker)
  mapfile -t others < <(go list "${longest[@]}" "${modules[@]/%//...}" | grep -v '/scripts/e2e' |
    grep -vxFf <(go list "${breaking[@]}") | awk '!seen[$0]++')
}

# Vet is among the linters, and nobody debugs these programs: leaving out both, and
# what a debugger reads, saves a quarter of the time until the first test runs.
race=(-race -timeout 60m -vet=off '-ldflags=-s -w' -gcflags=all=-dwarf=false)

# Without the race detector, with the flags of the programs that the tests start.
plain=(-timeout 60m -vet=off '-ldflags=-s -w' -gcflags=all=-dwarf=false)

# counting are tests that count bytes or pixels, or the seconds of one large picture.
# The race detector finds nothing in them and multiplies what they count; they have run
# without it.
counting='^(TestWorkIsBoundedBySize|TestLargePicturesHoldUpNobody|TestWorkEndsWithItsTime|TestSizes)$'

# step runs a command with its output in a log, and shows that where it fails:
# step NAME COMMAND…
step() {
  local name=$1 log=$logs/$1.log
  shift
  if "$@" >"$log" 2>&1; then
    echo "$name: ok"
    return
  fi
  cat "$log"
  echo "$name: FAILED; its output is above, and in $log"
  echo "$name" >>"$logs/failed_steps"
  return 1
}

# await waits for a step in the background: await NAME PID
await() { wait "$2" || failed+=("$1"); }

# report prints what failed and what was flaky by name, and last of all the sums of
# the run: report COMMAND
report() {
  local user=0 system=0 child_user child_system
  # A run in which nothing was flaky has no such files.
  find "$logs" \( -name '*.flaky' -o -name page.log \) -exec \
    sed -n 's/^\(.*\): 2 runs, 1 failures\?.*/\1/p; s/^flaky: /page: /p' {} + | sort -u >"$flaky_list"
  if [[ -s $flaky_list ]]; then
    echo 'flaky, passed when run again:'
    sed 's/^/  /' "$flaky_list"
  fi
  if ((${#failed[@]})); then
    echo "failed: ${failed[*]}"
    for name in "${failed[@]}"; do
      failed_tests "$name"
    done | sort -u
  fi
  # Of a long run a reader is often shown the end only.
  while read -r name; do
    echo "the end of $name, which failed:"
    tail -n 20 "$logs/$name.log" | cut -c 1-300 | sed 's/^/  /'
  done < <(cat "$logs/failed_steps" 2>/dev/null)
  times >"$logs/times" # in this shell: another has times of its own
  { read -r user system && read -r child_user child_system; } <"$logs/times"
  echo "$1: tests=$(cat "$logs"/*.tests.json 2>/dev/null | grep -c '"Action":"pass".*"Test":') seconds=$SECONDS" \
    "cpu_seconds=$(seconds "$user" "$system" "$child_user" "$child_system") flaky=$(wc -l <"$flaky_list") failed=${#failed[@]}"
  ((${#failed[@]} == 0))
}

# failed_tests prints the tests of a run that failed for good.
failed_tests() {
  sed -n 's/.*"Action":"fail".*"Package":"\([^"]*\)","Test":"\([^"]*\)".*/  \1.\2/p' "$logs/$1.tests.json" 2>/dev/null |
    grep -vxFf <(sed 's/^/  /' "$flaky_list") || true
}

# seconds adds times such as 1m2.345s.
seconds() {
  local time sum=0
  for time in "$@"; do
    time=${time%s}
    sum=$((sum + ${time%m*} * 60 + 10#$(printf '%.0f' "${time#*m}")))
  done
  echo "$sum"
}
