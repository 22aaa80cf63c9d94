# shellcheck shell=bash
# Finding ports that nobody uses, and asking what stands on one.

# port_open tells whether something listens on 127.0.0.1.
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# port_used tells whether a server cannot listen there: something else does, or
# has a connection from that port. Those that are ending are in nobody's way.
port_used() {
  local established=01 asking=02 listening=0A
  port_open "$1" || grep -qsE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ ($established|$asking|$listening) " \
    /proc/net/tcp /proc/net/tcp6
}

# free_ports prints as many unused ports as asked for: free_ports COUNT [FIRST]
# They are among the 1,500 from FIRST on, so that those of one kind are none of
# another's that does not listen yet, nor of the tests' own servers, which are
# below 10,000. All are below those that systems give to outgoing connections
# (Linux from 32,768 on, gVisor from 16,000), and none is one that browsers
# refuse (https://fetch.spec.whatwg.org/#port-blocking). No two have the same last
# two digits: the second replica of a service listens a hundred above the first.
free_ports() {
  local count=$1 first=${2:-10100} port given=' '
  while ((count > 0)); do
    port=$((first + RANDOM % 1500))
    if [[ $given != *" $((port % 100)) "* ]] && ! port_used "$port"; then
      given+="$((port % 100)) "
      echo "$port"
      count=$((count - 1))
    fi
  done
}

# stack_ports exports ports of its own for a whole stack, apart from those of the
# native servers, which `scripts/stack up` chooses.
stack_ports() {
  local names=(GATEWAY_PORT GATEWAY_TLS_PORT REPORT_PORT NOTIFICATION_PORT REPORT_OPERATIONS_PORT NOTIFICATION_OPERATIONS_PORT
    DELIVERY_OPERATIONS_PORT PHOTO_OPERATIONS_PORT MAILBOX_PORT MAILBOX_SMTP_PORT RABBITMQ_PORT RABBITMQ_MANAGEMENT_PORT) ports i
  mapfile -t ports < <(free_ports "${#names[@]}" 11600)
  for i in "${!names[@]}"; do
    export "${names[i]}=${ports[i]}"
  done
}

# http_ok tells whether a GET on 127.0.0.1 is answered with 200. It needs no
# curl, which a bare machine may lack.
http_ok() {
  local port=$1 path=$2 header=${3:-} status
  status=$(
    exec 2>/dev/null
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "$path" "${header:+$header$'\r\n'}" >&3
    read -r -t 5 line <&3 && echo "$line" || exit 1
    read -r -d '' -t 5 <&3 || true # the rest, or else Patroni complains in its log
  ) || return 1
  [[ $status == HTTP/1.*\ 200[[:space:]]* ]]
}
