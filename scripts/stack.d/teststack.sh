# shellcheck shell=bash
# The servers that the tests use: one PostgreSQL and one RabbitMQ, empty. Tests
# make their own databases and vhosts there. Their addresses stay the same from
# run to run where they can, because Go remembers the result of a test by them.

test_dir=$state/test
test_known=$state/test.known
# Runs hold a shared lock on this file (scripts/test-servers.sh).
test_users=$state/test.users
# There while the servers are those of runs; it says where TEST_DATA is.
test_of_runs=$test_dir/of-runs

# test_up starts the servers unless they run, and prints their addresses. It installs
# what `make test` uses, or also what `make check` does: test_up [test|check]. With
# TEST_RUN the last run stops them, unless somebody has asked for them without it.
test_up() {
  local install
  check_go
  report_faults
  # shellcheck disable=SC2046 # a word for each package
  need_packages $(missing_for_tests "${1:-test}") &
  install=$!
  test_running || servers_build
  wait "$install" || exit 1
  if ! test_running; then
    test_start
    [[ -z ${TEST_RUN:-} ]] || echo "${TEST_DATA:-}" >"$test_of_runs"
  fi
  [[ -n ${TEST_RUN:-} ]] || rm -f "$test_of_runs"
  cat "$test_dir/env"
}

test_running() {
  [[ -s $test_dir/env ]] && running "$test_dir/postgres.pid" && running "$test_dir/rabbitmq.pid"
}

# test_start begins with empty servers: whatever an interrupted run left is gone.
# TEST_DATA is a folder for their files, if they are not to be among the others.
test_start() {
  test_down
  local password ports server
  mkdir -p "$test_dir"
  if [[ -n ${TEST_DATA:-} ]]; then
    for server in postgres rabbitmq; do
      ln -s "$(mktemp -d "$TEST_DATA/cityconnect.XXXXXX")" "$test_dir/$server"
    done
  fi
  password=$(secret "$test_known.password")
  mapfile -t ports < <(test_ports)
  say "starting PostgreSQL and RabbitMQ for the tests in ${TEST_DATA:-$test_dir}"
  postgres_start "$test_dir/postgres" "${ports[0]}" "$test_known.password" ${TEST_UNSYNCED:+fsync=off full_page_writes=off}
  test_broker_start
  (
    umask 077
    cat >"$test_dir/env" <<ENV
export TEST_DATABASE_URL='postgres://cityconnect:$password@127.0.0.1:${ports[0]}/postgres?sslmode=disable'
export TEST_RABBITMQ_URL='amqp://cityconnect:$password@127.0.0.1:${ports[1]}/'
export TEST_RABBITMQ_MANAGEMENT_URL='http://cityconnect:$password@127.0.0.1:${ports[2]}'
ENV
  )
}

test_broker_start() {
  local ports
  mapfile -t ports <"$test_known.ports"
  # Tests delete their queues. When a file of the log of all quorum queues is full,
  # RabbitMQ moves what is in it to a file of each queue, and may crash where a queue
  # was just deleted (rabbitmq/ra#484): this file is larger than what a run writes.
  rabbitmq_start "$test_dir/rabbitmq" "$(IFS=, && echo "${ports[*]:1:5}")" "$test_known.password" \
    -statistics 500ms -log-file $((1 << 30)) ${TEST_UNSYNCED:+-unsynced}
}

# test_mend stops the broker and starts it on what it has, and keeps its words.
test_mend() {
  say 'the tests'"'"' RabbitMQ refuses new queues; starting it again. Of its log:'
  grep -vE 'Channel error|channel exception|closed TCP|^[^[]*\[[a-z]*\] <[^>]*> *$' "$test_dir/rabbitmq.log" |
    grep -E '\[(error|critical)\] <[^>]*> [^ ]' | head -n 40 | cut -c1-300 >&2 || true
  rabbitmq_stop "$test_dir/rabbitmq"
  test_broker_start
}

# test_ports prints the ports of the last run if they are still free, else others.
test_ports() {
  local port
  if [[ -s $test_known.ports ]]; then
    while read -r port; do
      if port_used "$port"; then
        rm -f "$test_known.ports"
        break
      fi
    done <"$test_known.ports"
  fi
  [[ -s $test_known.ports ]] || free_ports 6 >"$test_known.ports"
  cat "$test_known.ports"
}

# test_leave stops the servers of runs if no run uses them any more.
test_leave() {
  local data
  [[ -e $test_of_runs ]] || return 0
  if has flock; then
    exec 8>>"$test_users"
    flock -n 8 || return 0
  fi
  data=$(<"$test_of_runs")
  test_down
  [[ -z $data ]] || rmdir "$data" 2>/dev/null || true
}

# test_down stops the servers and removes their data.
test_down() {
  rm -f "$test_dir/env"
  rabbitmq_stop "$test_dir/rabbitmq"
  postgres_stop "$test_dir/postgres"
  server_remove "$test_dir/rabbitmq"
  server_remove "$test_dir/postgres"
  rm -rf "$test_dir"
}
