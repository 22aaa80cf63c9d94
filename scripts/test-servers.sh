# shellcheck shell=bash
# The tests' servers, for as long as a run uses them. Several runs in one checkout
# share them: the last one that leaves stops them, if a run has started them. Those
# that `scripts/stack test-up` has started stay. Source it from the repository's top.

# take_servers starts the tests' servers, unless they run, and says where they are:
# take_servers [test|check]
take_servers() {
  local addresses folder=${STACK_DIR:-$PWD/.stack}
  mkdir -p "$folder"
  # Before the servers are looked at: whoever leaves sees this lock, or has stopped
  # them already.
  exec 8>>"$folder/test.users"
  ! command -v flock >/dev/null || flock -s 8
  addresses=$(TEST_RUN=1 scripts/stack test-up "${1:-test}" 8>&-)
  eval "$addresses"
}

# leave_servers stops them if nobody else uses them.
leave_servers() {
  # Processes of this run that are still there have the same lock: it ends for all.
  ! command -v flock >/dev/null || flock -u 8 2>/dev/null || return 0 # never taken
  scripts/stack test-leave 8>&-
}
