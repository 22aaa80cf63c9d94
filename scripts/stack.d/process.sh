# shellcheck shell=bash
# Starting processes that outlive this script, and stopping exactly those.

# birth prints when a process started, so that a pid that the system has
# given to someone else since is not taken for ours. It prints nothing for one that has
# ended, be it a zombie still. State and start are read at once: by two reads, a
# zombie that is reaped in between would be taken for alive.
birth() {
  if [[ -r /proc/$1/stat ]]; then
    sed -E 's/.*\) //; /^[ZX]/d' "/proc/$1/stat" | cut -d' ' -f20
  else
    ps -o lstart= -p "$1"
  fi 2>/dev/null
}

# running tells whether the process noted in the pid file is alive.
running() {
  local pid born
  [[ -s $1 ]] || return 1
  { read -r pid && read -r born; } <"$1"
  [[ -n $born && $(birth "$pid") == "$born" ]]
}

# pid_of prints the pid noted in the pid file.
pid_of() { head -n 1 "$1"; }

# start runs a command in the background, in a session of its own, and notes its
# pid: start PIDFILE LOG COMMAND…
start() {
  local pidfile=$1 log=$2 detach=(nohup)
  shift 2
  mkdir -p "$(dirname "$pidfile")" "$(dirname "$log")"
  if has setsid; then
    detach=(setsid)
  fi
  "${detach[@]}" "$@" </dev/null >>"$log" 2>&1 9>&- &
  local pid=$!
  printf "%s\n%s\n" "$pid" "$(birth "$pid")" >"$pidfile"
}

# give_way puts a process behind all others where they want more of the processors
# than there is, as cpu_shares does with a container. Linux shares them out among
# sessions (sched(7), autogroup), and other systems among processes.
give_way() { { echo 10 >"/proc/$1/autogroup" || renice -n 10 -p "$1"; } >/dev/null 2>&1 || true; }

# end ends processes that are not ours by a pid file, and waits until they are
# reaped: PostgreSQL does not start while its last one is a zombie. end SIGNAL PID…
end() {
  local signal=$1 pid i
  shift
  kill "-$signal" "$@" 2>/dev/null || true
  for pid in "$@"; do
    for ((i = 0; i < 300; i++)); do
      [[ -e /proc/$pid ]] || break
      sleep 0.1
    done
  done
}

# stop ends the process noted in the pid file with the signal (TERM if none is
# given) and waits for it; one that does not go within the time is killed.
stop() {
  local pidfile=$1 signal=${2:-TERM} seconds=${3:-30} pid
  if running "$pidfile"; then
    pid=$(pid_of "$pidfile")
    kill "-$signal" "$pid" 2>/dev/null || true # it may have ended since
    local deadline=$((SECONDS + seconds))
    while running "$pidfile"; do
      if ((SECONDS > deadline)); then
        say "process $pid ignores SIG$signal for ${seconds}s; killing it"
        kill -KILL "$pid" 2>/dev/null || true
        deadline=$((SECONDS + seconds))
      fi
      sleep 0.1
    done
  fi
  rm -f "$pidfile"
}
