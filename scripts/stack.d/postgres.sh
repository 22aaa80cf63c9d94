# shellcheck shell=bash
# A private PostgreSQL server in a folder.

# postgres_bin prints the folder of the newest PostgreSQL programs.
postgres_bin() {
  local dir
  for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin | sort -rV); do
    if [[ -x $dir/initdb ]]; then
      echo "$dir"
      return
    fi
  done
  has initdb && dirname "$(command -v initdb)"
}

# postgres_start starts the server of a folder: postgres_start DIR PORT PASSWORD.
# Its superuser is cityconnect.
postgres_start() {
  local dir=$1 port=$2 password=$3 user home
  user=$(server_user postgres)
  home=$(server_home "$dir" "$user")
  [[ -s $home/data/PG_VERSION ]] || postgres_init "$home" "$user" "$password"
  start "$user" "$dir.pid" "$dir.log" "$(postgres_bin)/postgres" -D "$home/data" \
    -c port="$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c max_connections=400 -c shared_buffers=256MB -c max_wal_size=4GB
  wait_for PostgreSQL 60 "$dir.pid" "$dir.log" \
    "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "$port"
}

# postgres_init creates the empty cluster.
postgres_init() {
  local home=$1 user=$2 password=$3 locale=C
  if locale -a 2>/dev/null | grep -qix 'c.utf-\?8'; then
    locale=C.UTF-8
  fi
  rm -rf "$home/data"
  printf '%s\n' "$password" >"$home/password"
  chown "$user" "$home/password"
  (cd "$home" && as_user "$user" "$(postgres_bin)/initdb" -D "$home/data" -U cityconnect \
    --pwfile="$home/password" --auth=scram-sha-256 --encoding=UTF8 --locale="$locale") >"$home/initdb.log" 2>&1 9>&- || {
    tail -n 15 "$home/initdb.log" >&2
    die "initdb failed"
  }
  rm -f "$home/password"
}

# postgres_stop ends open sessions and shuts down cleanly.
postgres_stop() { stop "$1.pid" INT; }
