# shellcheck shell=bash
# Finding ports that nobody uses, and asking what stands on one.

# port_open tells whether something listens on 127.0.0.1.
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports prints as many unused ports as asked for, below the range from
# which the system takes the ports of outgoing connections.
free_ports() {
  local count=$1 port
  while ((count > 0)); do
    port=$((20000 + RANDOM % 12000))
    [[ " ${taken_ports[*]-} " == *" $port "* ]] && continue
    if ! port_open "$port"; then
      taken_ports+=("$port")
      echo "$port"
      count=$((count - 1))
    fi
  done
}

# http_ok tells whether a GET on 127.0.0.1 is answered with 200. It needs no
# curl, which a bare machine may lack.
http_ok() {
  local port=$1 path=$2 header=${3:-} status
  status=$(
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "$path" "${header:+$header$'\r\n'}" >&3
    head -n 1 <&3
  ) 2>/dev/null || return 1
  [[ $status == *" 200 "* || $status == *" 200"$'\r' ]]
}
