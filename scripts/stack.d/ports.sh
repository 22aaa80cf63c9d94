# shellcheck shell=bash
# Finding ports that nobody uses, and asking what stands on one.

# port_open tells whether something listens on 127.0.0.1.
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports prints as many unused ports as asked for, below the range from
# which the system takes the ports of outgoing connections, and below that of
# the tests' own servers.
free_ports() {
  local count=$1 port given=' '
  while ((count > 0)); do
    port=$((20000 + RANDOM % 6000))
    if [[ $given != *" $port "* ]] && ! port_open "$port"; then
      given+="$port "
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
    exec 2>/dev/null
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "$path" "${header:+$header$'\r\n'}" >&3
    read -r -t 5 line <&3 && echo "$line"
  ) || return 1
  [[ $status == HTTP/1.*\ 200[[:space:]]* ]]
}
