# shellcheck shell=bash
# nginx as the gateway of the native stack, from the template that Compose uses.

gateway_port=${GATEWAY_PORT:-8080}
gateway_tls_port=${GATEWAY_TLS_PORT:-8443}
gateway_dir=$native_dir/gateway

# gateway_up starts nginx, or tells it of a changed configuration.
gateway_up() {
  local pidfile=$native_dir/gateway.pid log=$state/logs/gateway.log before after master workers=() started=''
  mkdir -p "$gateway_dir" "$state/logs"
  "$root/deploy/nginx/certificate.sh" "$gateway_dir/certificates"
  before=$(cat "$gateway_dir"/*.conf 2>/dev/null | cksum)
  gateway_configure
  after=$(cat "$gateway_dir"/*.conf | cksum)
  if running "$pidfile"; then
    if [[ $before != "$after" ]]; then
      master=$(pid_of "$pidfile")
      read -ra workers <"/proc/$master/task/$master/children" || true
      kill -HUP "$master"
      # Until then they answer by the configuration before.
      wait_for "the gateway's new configuration" "$pidfile" "$log" accept_no_more "${workers[@]}"
    fi
  else
    gateway_down
    started="started the gateway on ports $gateway_port and $gateway_tls_port (TLS)"
    start "$pidfile" "$log" "$(find_program nginx)" -c "$gateway_dir/nginx.conf" -p "$gateway_dir/" -e stderr
  fi
  timed "$started" wait_for "the gateway" "$pidfile" "$log" http_ok "$gateway_port" /gateway/livez
}

# accept_no_more succeeds once processes of nginx have ended, or only finish what they
# began, such as streams: accept_no_more PID…
accept_no_more() {
  local pid
  for pid; do
    [[ ! -e /proc/$pid ]] || grep -qs 'shutting down' "/proc/$pid/cmdline" || return 1
  done
}

# gateway_configure fills in the templates.
gateway_configure() {
  GATEWAY_LISTEN=127.0.0.1:$gateway_port GATEWAY_LISTEN_TLS=127.0.0.1:$gateway_tls_port \
    GATEWAY_REPORT_SERVERS=$(upstream_servers report) GATEWAY_NOTIFICATION_SERVERS=$(upstream_servers notification) \
    GATEWAY_TRUSTED_PROXY=${GATEWAY_TRUSTED_PROXY:-unix:} GATEWAY_HTTPS_ORIGIN=${GATEWAY_HTTPS_ORIGIN:-} \
    GATEWAY_LIMITS=${GATEWAY_LIMITS:-on} GATEWAY_READS=${GATEWAY_READS:-300} \
    GATEWAY_WRITES=${GATEWAY_WRITES:-20} GATEWAY_STREAMS=${GATEWAY_STREAMS:-500} \
    GATEWAY_ACCESS_LOG=$state/logs/gateway-access.log GATEWAY_CERTIFICATES=$gateway_dir/certificates \
    fill_in "$root/deploy/nginx/templates/gateway.conf.template" >"$gateway_dir/gateway.conf"
  local user=''
  if is_root; then
    user="user $(id -un www-data 2>/dev/null || echo nobody);"
  fi
  NATIVE_USER=$user NATIVE_DIR=$gateway_dir NATIVE_NOFILE=$(ulimit -Hn | sed 's/unlimited/65536/') \
    fill_in "$root/deploy/nginx/native.conf.template" >"$gateway_dir/nginx.conf"
}

# upstream_servers prints nginx's server lines of a service's replicas.
upstream_servers() {
  local number
  for number in $(seq "$replicas"); do
    printf 'server 127.0.0.1:%s max_fails=0; ' "$(replica_port "$1" "$number")"
  done
}

# fill_in prints a template with the ${GATEWAY_…} and ${NATIVE_…} of the
# environment, as nginx's own image does with envsubst.
fill_in() {
  local text name
  text=$(cat "$1")
  for name in "${!GATEWAY_@}" "${!NATIVE_@}"; do
    text=${text//"\${$name}"/"${!name}"}
  done
  printf '%s\n' "$text"
}

# gateway_down lets requests in hand finish, but not streams, which would stay. A
# worker that has ended is in nobody's way, even if nobody has reaped it yet.
gateway_down() {
  local orphans i
  stop "$native_dir/gateway.pid" TERM
  for ((i = 0; i < 300; i++)); do
    mapfile -t orphans < <(gateway_orphans)
    ((${#orphans[@]})) || break
    kill -TERM "${orphans[@]}" 2>/dev/null || true
    sleep 0.1
  done
}

# gateway_orphans prints the workers of a master that was killed, which go on
# serving: whatever writes the log that the gateway was started with.
gateway_orphans() {
  local log=$state/logs/gateway.log output pid
  for output in /proc/[0-9]*/fd/1; do
    if [[ $output -ef $log ]]; then
      pid=${output#/proc/}
      echo "${pid%%/*}"
    fi
  done
}
