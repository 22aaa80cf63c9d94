# shellcheck shell=bash
# What every other part uses: where state lives, how to speak, who runs what.

# All state of this checkout. Another folder makes another, separate stack.
state=${STACK_DIR:-$root/.stack}

# load_settings takes from a file what the environment does not say, as Compose
# does with .env.
load_settings() {
  local line name value
  [[ -r $1 ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line =~ ^([A-Z][A-Z0-9_]*)=(.*)$ ]] || continue
    name=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
    if [[ $value =~ ^\"(.*)\"$ || $value =~ ^\'(.*)\'$ ]]; then
      value=${BASH_REMATCH[1]}
    fi
    [[ -v $name ]] || export "$name=$value"
  done <"$1"
}

# remember notes which stack is up, and with what, for the commands that only
# look: they need not be told again.
remember() {
  printf '%s\n' "STACK=$1" "REPLICAS=$replicas" "RABBITMQ_NODES=$rabbitmq_nodes" "POSTGRES_NODES=$postgres_nodes" "GATEWAY_PORT=$gateway_port" \
    "GATEWAY_TLS_PORT=$gateway_tls_port" "REPORT_PORT=$report_port" "NOTIFICATION_PORT=$notification_port" \
    "REPORT_OPERATIONS_PORT=$report_operations_port" "NOTIFICATION_OPERATIONS_PORT=$notification_operations_port" \
    "DELIVERY_OPERATIONS_PORT=$delivery_operations_port" "PHOTO_OPERATIONS_PORT=$photo_operations_port" "MAILBOX_PORT=$mailbox_port" "MAILBOX_SMTP_PORT=$mailbox_smtp_port" \
    "RABBITMQ_PORT=$rabbitmq_port" "RABBITMQ_MANAGEMENT_PORT=$rabbitmq_management_port" >"$state/up"
}

forget() { rm -f "$state/up"; }

# nodes prints how many nodes a server has: what the environment says, or as many
# as its data is on, or 1: nodes rabbitmq|postgres
nodes() { (load_settings "$state/nodes" && name=${1^^}_NODES && echo "${!name:-1}"); }

# remember_nodes notes it before anything starts: an `up` that fails may leave data.
remember_nodes() { printf '%s\n' "RABBITMQ_NODES=$rabbitmq_nodes" "POSTGRES_NODES=$postgres_nodes" >"$state/nodes"; }

# forget_nodes is for when the data is gone.
forget_nodes() { rm -f "$state/nodes"; }

# say tells the person at the terminal what happens; stdout stays for answers.
say() { printf 'stack: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# timed runs a command, and prints a line with its seconds once it is done. Without a
# text it prints nothing: timed TEXT COMMAND…
timed() {
  local text=$1 began=$SECONDS
  shift
  "$@" # no `||`, which would let the command go on after a failure
  [[ -z $text ]] || say "$text ($((SECONDS - began)) s)"
}

# logged runs a command with its output in a log, the end of which is shown when it
# fails: logged NAME COMMAND…
logged() {
  local log=$state/logs/$1.log
  mkdir -p "$state/logs"
  "${@:2}" >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    die "$1 failed; its log is $log"
  }
}

has() { command -v "$1" >/dev/null 2>&1; }

is_root() { [[ $(id -u) == 0 ]]; }

# with_lock runs a command while no other call changes the same state.
with_lock() {
  mkdir -p "$state"
  if has flock; then
    exec 9>"$state/lock"
    flock 9
  fi
  "$@"
}

# secret prints the secret kept in a file, making a random one the first time.
secret() {
  local file=$1
  if [[ ! -s $file ]]; then
    mkdir -p "$(dirname "$file")"
    (
      umask 077
      head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$file"
    )
  fi
  cat "$file"
}

# wait_for repeats a check until it succeeds. It gives up, and shows the end of
# the log, when the process is gone or five minutes are over: a busy machine is slow.
# wait_for WHAT PIDFILE LOG CHECK…
wait_for() {
  local what=$1 pidfile=$2 log=$3
  shift 3
  local deadline=$((SECONDS + 300))
  until "$@"; do
    if ! running "$pidfile" || ((SECONDS > deadline)); then
      tail -n 15 "$log" >&2 || true
      die "$what does not answer; its log is $log"
    fi
    sleep 0.2
  done
}
