# shellcheck shell=bash
# Three PostgreSQL nodes on this machine instead of one: POSTGRES_NODES=3. Patroni
# decides which of them is the primary, and the nodes agree over etcd. Each node
# has three processes by their pid files: etcd-1, postgres-1, which is Patroni, and
# PostgreSQL, which Patroni starts.

postgres_nodes=$(nodes postgres)

# The nodes' ports: of each PostgreSQL, Patroni, etcd and etcd's peers, with commas;
# patroni_ports fills them in.
patroni_nodes=()

# Patroni's program, or a Debian package of it; patroni_find fills it in.
patroni=''

# is_patroni tells whether there are several nodes.
is_patroni() { [[ $postgres_nodes == 3 ]]; }

# patroni_good tells whether a version may be used.
patroni_good() { [[ $1 =~ ^([0-9]+)\. ]] && ((BASH_REMATCH[1] >= 4)); }

# patroni_find finds a Patroni that may be used: one that is installed, or Debian's
# package of it, which is kept in a folder and not installed.
patroni_find() {
  local installed version
  if installed=$(find_program patroni); then
    version=$("$installed" --version 2>/dev/null | sed 's/^patroni *//') || true
    if patroni_good "$version"; then
      patroni=$installed
      return
    fi
    say "$installed is refused: Patroni ${version:-of an unknown version} is below 4, and such have lost acknowledged writes when a primary was frozen"
  fi
  patroni_kept || patroni_download || die "POSTGRES_NODES=3 needs Patroni 4 or newer, which is not here and could not be had from Debian 13 (the log, if there is one, is $state/logs/patroni.log). This would do, with etcd beside it:
  python3 -m venv /opt/patroni && /opt/patroni/bin/pip install 'patroni[etcd3,psycopg3]>=4'
  PATH=/opt/patroni/bin:\$PATH POSTGRES_NODES=3 make up"
}

# patroni_kept takes the package that was downloaded before.
patroni_kept() {
  local packages=("$state"/patroni/patroni_*.deb)
  ((${#packages[@]} == 1)) && patroni_good "$(dpkg-deb --field "${packages[0]}" Version)" && patroni=${packages[0]}
}

# patroni_download has apt download the package, and check it as it checks all
# others: from the machine's own sources, or else from Debian 13 by a list of its
# own, which changes nothing for the machine. The package fits every architecture
# and every Python that Debian has had since its version 12.
patroni_download() {
  local dir=$state/patroni apt=(apt-get --quiet) name=patroni mirror
  has apt-get && has dpkg-deb || return 1
  say "downloading Debian's package of Patroni (it is not installed)"
  rm -f "$dir"/patroni_*.deb
  mkdir -p "$dir"/{lists,cache/archives}/partial "$state/logs"
  if ! patroni_good "$(apt-cache policy patroni | sed -n 's/^ *Candidate: //p')"; then
    # shellcheck disable=SC2016 # this is apt's
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sort -u | sed -n 1p) || true
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg target=Packages] ${mirror:-http://deb.debian.org/debian/} trixie main" >"$dir/trixie.list"
    apt+=(-o Dir::Etc::SourceList="$dir/trixie.list" -o Dir::Etc::SourceParts=- -o Acquire::Languages=none
      -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache")
    name=patroni/trixie
    "${apt[@]}" update >"$state/logs/patroni.log" 2>&1 9>&- || return 1
  fi
  (cd "$dir" && "${apt[@]}" download "$name") >>"$state/logs/patroni.log" 2>&1 9>&- && patroni_kept
}

# patroni_packages prints the Debian packages that are missing: etcd, and what a
# Patroni that is not installed imports.
patroni_packages() {
  local imported=(python3-{click,dateutil,etcd,prettytable,psutil,psycopg2,urllib3,ydiff,yaml})
  find_program etcd >/dev/null || echo etcd-server
  [[ $patroni == *.deb ]] || return 0
  ! grep -qs '^VERSION_ID="12"' /etc/os-release || imported=("${imported[@]/ydiff/cdiff}") # its name there
  # shellcheck disable=SC2016 # these are dpkg's
  comm -23 <(printf '%s\n' "${imported[@]}" | sort) \
    <(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "${imported[@]}" 2>/dev/null | sed -n 's/ installed$//p' | sort)
}

# patroni_ports reads the nodes' ports. They are chosen once: the members of etcd
# remember each other's.
patroni_ports() {
  local file=$native_dir/postgres.ports ports node
  if [[ ! -s $file ]]; then
    mkdir -p "$native_dir"
    mapfile -t ports < <(free_ports 12 13300)
    for node in 0 1 2; do
      (IFS=, && echo "${ports[*]:4*node:4}")
    done >"$file"
  fi
  mapfile -t patroni_nodes <"$file"
}

# patroni_port prints a port of a node: patroni_port NUMBER postgres|rest|etcd|peers
patroni_port() {
  local ports
  IFS=, read -ra ports <<<"${patroni_nodes[$1 - 1]}"
  case $2 in
    postgres) echo "${ports[0]}" ;;
    rest) echo "${ports[1]}" ;;
    etcd) echo "${ports[2]}" ;;
    peers) echo "${ports[3]}" ;;
  esac
}

# patroni_addresses prints the addresses of all PostgreSQL nodes, with commas
# between them.
patroni_addresses() {
  local node addresses=()
  for node in 1 2 3; do
    addresses+=("127.0.0.1:$(patroni_port "$node" postgres)")
  done
  (IFS=, && echo "${addresses[*]}")
}

# patroni_flags prints the flags of the program servers for a node or for its member
# of etcd, one a line: patroni_flags etcd|postgres NUMBER PASSWORD_FILE
patroni_flags() {
  printf '%s\n' -dir "$native_dir/$1-$2" -number "$2" -cluster "${patroni_nodes[*]}" -password "$3" \
    -patroni "$patroni" -settings "$root/deploy/patroni/patroni.yml"
}

# patroni_start starts what does not run: patroni_start PASSWORD_FILE
patroni_start() {
  local node flags dir
  # All at the same time: a member without the others is not ready.
  for node in 1 2 3; do
    dir=$native_dir/etcd-$node
    running "$dir.pid" && continue
    patroni_unused "$(patroni_port "$node" etcd)" "$(patroni_port "$node" peers)"
    mapfile -t flags < <(patroni_flags etcd "$node" "$1")
    start "$dir.pid" "$dir.log" "$state/bin/servers" run etcd "${flags[@]}"
  done
  for node in 1 2 3; do
    dir=$native_dir/etcd-$node
    mapfile -t flags < <(patroni_flags etcd "$node" "$1")
    wait_for "etcd $node" "$dir.pid" "$dir.log" server_ready etcd "${flags[@]}"
  done
  for node in 1 2 3; do
    patroni_node_start "$node" "$1"
  done
  for node in 1 2 3; do
    patroni_node_wait "$node" "$1"
  done
}

# patroni_node_start starts a PostgreSQL node that does not run:
# patroni_node_start NUMBER PASSWORD_FILE
patroni_node_start() {
  local dir=$native_dir/postgres-$1 flags
  running "$dir.pid" && return
  patroni_unused "$(patroni_port "$1" rest)"
  say "starting PostgreSQL node $1 on port $(patroni_port "$1" postgres)"
  mapfile -t flags < <(patroni_flags postgres "$1" "$2")
  start "$dir.pid" "$dir.log" "$state/bin/servers" run patroni "${flags[@]}"
}

# patroni_node_wait returns once a PostgreSQL node answers:
# patroni_node_wait NUMBER PASSWORD_FILE
patroni_node_wait() {
  local dir=$native_dir/postgres-$1 flags
  mapfile -t flags < <(patroni_flags postgres "$1" "$2")
  wait_for "PostgreSQL node $1" "$dir.pid" "$dir.log" server_ready patroni "${flags[@]}"
}

# patroni_unused ends this unless all of the ports are free.
patroni_unused() {
  local port
  for port in "$@"; do
    ! port_open "$port" || die "port $port of the PostgreSQL nodes is taken by another program, and they remember it: end that program, or scripts/stack clean, which removes the data"
  done
}

# patroni_primary_port prints the port of the PostgreSQL that takes writes, if one
# does: one that starts again has the lease, and Patroni calls it the primary, before
# it does. It connects as the environment tells psql.
patroni_primary_port() {
  local node port
  for node in 1 2 3; do
    port=$(patroni_port "$node" postgres)
    PGTARGETSESSIONATTRS=read-write patroni_serves "$port" postgres && echo "$port" && return
  done
  return 1
}

# patroni_replayed returns once every node has a database that was just made: a
# client that asks for it too early is refused, and then asks no other node. It
# connects as the environment tells psql: patroni_replayed DATABASE
patroni_replayed() {
  local node dir
  for node in 1 2 3; do
    dir=$native_dir/postgres-$node
    wait_for "database $1 of PostgreSQL node $node" "$dir.pid" "$dir.log" patroni_serves "$(patroni_port "$node" postgres)" "$1"
  done
}

patroni_serves() { PGPORT=$1 PGCONNECT_TIMEOUT=2 psql -X -q -d "$2" -c 'select' >/dev/null 2>&1; }

# patroni_status prints a line for each process, with who is the primary.
patroni_status() {
  local node pid role well=0
  patroni_ports
  for node in 1 2 3; do
    status_line "etcd-$node" "$(patroni_port "$node" etcd)" '' || well=1
  done
  for node in 1 2 3; do
    pid=- role=stopped
    if running "$native_dir/postgres-$node.pid"; then
      pid=$(pid_of "$native_dir/postgres-$node.pid") role='not ready'
      if http_ok "$(patroni_port "$node" rest)" /primary; then
        role=primary
      elif http_ok "$(patroni_port "$node" rest)" /replica; then
        role=standby
      fi
    fi
    printf '%-16s %-8s %-24s %s\n' "postgres-$node" "$pid" "$(patroni_port "$node" postgres), Patroni $(patroni_port "$node" rest)" "$role"
    [[ $role == primary || $role == standby ]] || well=1
  done
  return "$well"
}

# patroni_node_stop stops one node, which gives its lease back if it is the primary,
# and the PostgreSQL that a killed Patroni has left behind: patroni_node_stop DIR
patroni_node_stop() {
  stop "$1.pid" TERM 60
  local folder left=()
  for folder in /proc/[0-9]*/cwd; do
    if [[ $folder -ef $1/data ]]; then
      folder=${folder#/proc/}
      left+=("${folder%%/*}")
    fi
  done
  ((${#left[@]} == 0)) || end KILL "${left[@]}"
}

# patroni_stop stops all nodes at the same time, and then etcd.
patroni_stop() {
  local pidfile pid stopping=()
  for pidfile in "$native_dir"/postgres-[1-9].pid; do
    patroni_node_stop "${pidfile%.pid}" &
    stopping+=($!)
  done
  for pid in "${stopping[@]}"; do # and for nothing else: a build may be under way
    wait "$pid"
  done
  for pidfile in "$native_dir"/etcd-[1-9].pid; do
    stop "$pidfile"
  done
}

# patroni_remove deletes the nodes' data.
patroni_remove() {
  local node
  for node in 1 2 3; do
    server_remove "$native_dir/postgres-$node"
    server_remove "$native_dir/etcd-$node"
  done
}

# patroni_control runs patronictl on the stack's nodes.
patroni_control() {
  local dir=$native_dir/postgres-1
  [[ -d $dir/config ]] || die "patronictl: the stack has no nodes of Patroni; POSTGRES_NODES=3 make up starts them"
  if [[ -d $dir/patroni ]]; then
    PYTHONPATH=$dir/patroni/usr/lib/python3/dist-packages /usr/bin/python3 "$dir/patroni/usr/bin/patronictl" -c "$dir/config" "$@"
  else
    patroni_find
    "$(dirname "$patroni")/patronictl" -c "$dir/config" "$@"
  fi
}
