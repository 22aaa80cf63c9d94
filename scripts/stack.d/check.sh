# shellcheck shell=bash
# What can be known to fail is refused before anything is built or started, all at
# once: each fault names the variable and says what must hold.

# Disk that the first start takes, in MiB: programs, servers and their data, and
# the compiler's cache. A second start needs far less, but data grows.
disk_needed=700 cache_needed=500

faults=()

# check_up looks at everything that `up` depends on: check_up native|compose
check_up() {
  faults=()
  check_env_file
  check_files "$1"
  check_number REPLICAS "$replicas" 1 99 || true
  [[ $rabbitmq_nodes == [13] ]] || fault "RABBITMQ_NODES must be 1 or 3, not '$rabbitmq_nodes'"
  [[ $postgres_nodes == [13] ]] || fault "POSTGRES_NODES must be 1 or 3, not '$postgres_nodes'"
  find_release
  # With Compose the images compile theirs, and only the demo is of this machine.
  [[ -n $archive || ($1 == compose && ${command:-} != demo) ]] || check_go
  ((${#faults[@]})) || check_ports "$1"
  check_disk "$state" "$disk_needed" STACK_DIR
  if [[ $1 == native && -z $archive ]] && has go; then
    check_disk "$(go env GOCACHE)" "$cache_needed" GOCACHE
  fi
  report_faults
}

fault() { faults+=("$*"); }

report_faults() {
  ((${#faults[@]})) || return 0
  say "nothing was started, because:"
  printf '  %s\n' "${faults[@]}" >&2
  exit 1
}

# check_number refuses what is not a number within bounds: check_number NAME VALUE MIN MAX
check_number() {
  [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] && (($2 >= $3 && $2 <= $4)) && return
  fault "$1 must be a number from $3 to $4, not '$2'"
  return 1
}

# check_go refuses a Go that is older than the one that go.work asks for.
check_go() {
  local wanted version
  wanted=$(sed -n 's/^go //p' "$root/go.work")
  if ! has go; then
    fault "Go $wanted or newer must be installed: https://go.dev/doc/install; or the archive of the checked-out release must be beside this folder, with its SHA256SUMS"
    return
  fi
  version=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || version=unknown
  version=${version#go}
  [[ $(printf '%s\n' "$wanted" "${version%%[^0-9.]*}" | sort -V | head -n 1) == "$wanted" ]] ||
    fault "Go must be $wanted or newer, not $version ($(command -v go)): https://go.dev/doc/install"
}

# check_env_file refuses names in .env that nothing reads: a misspelt one would do
# nothing without a word. What .env.example lists may also be read from a file, by
# the name with _FILE; Compose and its images have variables of their own.
check_env_file() {
  local line name
  [[ -r $root/.env ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line =~ ^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*= ]] || continue
    name=${BASH_REMATCH[2]}
    case $name in
      STACK | STACK_DIR | COMPOSE_* | DOCKER_* | *_IMAGE) continue ;;
    esac
    grep -qE "^#?${name%_FILE}(_FILE)?=" "$root/.env.example" ||
      grep -qsE "\\\$\{$name[:}?-]" "$root/docker-compose.yml" "$root"/deploy/compose.*.yml ||
      fault "$name in .env is not a setting; .env.example lists all of them"
  done <"$root/.env"
}

# check_files refuses settings that name a file which is not there, or not what it must
# be: a service that is replaced would be stopped before the new one says so. With
# Compose only files that are mounted are of this machine: check_files native|compose
check_files() {
  local name file names folder=$PWD
  if [[ $1 == compose ]]; then
    folder=$root
    names=$(sed -nE 's/.*source: "\$\{([A-Z0-9_]+):-\/dev\/null\}".*/\1/p' "$root/docker-compose.yml")
  else
    names="CITY_LOGO CITY_WORDS $(compgen -e | grep -E '^[A-Z][A-Z0-9_]*_FILE$' | grep -v '^COMPOSE_' || true)"
  fi
  for name in $names; do
    file=${!name:-}
    grep -qE "^#?${name%_FILE}(_FILE)?=" "$root/.env.example" && [[ -n $file ]] || continue
    [[ $file == /* ]] || file=$folder/$file
    if [[ $name == CITY_WORDS ]]; then
      [[ -d $file && -r $file && -x $file ]] || fault "$name must name a folder that can be read, not '${!name}'"
    elif [[ ! -f $file || ! -r $file ]]; then
      fault "$name must name a file that can be read, not '${!name}'"
    elif [[ $1 == compose && ! $(stat -c '%u %A' "$file") =~ (^65532\ |r..$) ]]; then
      fault "$name must name a file that user 65532 can read, not '${!name}'"
    elif [[ $name == CITY_LOGO ]] && ! is_logo "$file"; then
      fault "$name must name an SVG or PNG of at most 64 KiB, not '${!name}'"
    fi
  done
}

# is_logo tells whether a file can be one, as the service looks at it more closely.
is_logo() {
  (($(stat -c %s "$1") <= 65536)) || return 1
  [[ $(head -c 4 "$1" | od -An -tx1) == ' 89 50 4e 47' ]] || grep -q '<svg' "$1"
}

# check_ports refuses ports that are not numbers, given twice, or used by another
# program. The ports of our own processes are theirs.
check_ports() {
  local variable name port number other
  local -A user=()
  while read -r variable name; do
    port=${variable,,} port=${!port}
    [[ $port != 0 ]] || continue # chosen by Compose
    check_number "$variable" "$port" 1 65535 || continue
    for number in $(seq "$(port_replicas "$variable")"); do
      other=$((port + 100 * (number - 1)))
      if [[ -n ${user[$other]:-} ]]; then
        fault "$variable must not be $port: ${user[$other]} uses port $other as well"
        continue
      fi
      user[$other]=$variable
      if port_open "$other" && ! port_ours "$1" "$variable" "$name" "$number"; then
        fault "port $other is taken by another program; choose one with $variable=…, for instance: make up $variable=$((port < 30000 ? port + 10000 : port - 10000))"
      fi
    done
  done < <(port_users "$1")
}

# port_users lists the variables of a stack's ports, and the process of each.
port_users() {
  printf '%s\n' 'GATEWAY_PORT gateway' 'GATEWAY_TLS_PORT gateway' 'REPORT_PORT report' 'NOTIFICATION_PORT notification' \
    'REPORT_OPERATIONS_PORT report' 'NOTIFICATION_OPERATIONS_PORT notification' \
    'DELIVERY_OPERATIONS_PORT delivery' 'PHOTO_OPERATIONS_PORT photo'
  if own_mailbox; then
    echo 'MAILBOX_PORT mailbox'
    [[ $1 == compose ]] || echo 'MAILBOX_SMTP_PORT mailbox'
  fi
  [[ $1 == native ]] || printf '%s\n' 'RABBITMQ_PORT rabbitmq' 'RABBITMQ_MANAGEMENT_PORT rabbitmq'
}

# port_replicas prints how many ports a variable stands for.
port_replicas() {
  case $1 in
    REPORT_* | NOTIFICATION_* | DELIVERY_* | PHOTO_*) echo "$replicas" ;;
    *) echo 1 ;;
  esac
}

# port_ours tells whether a port that is in use is used by this stack, be it by the
# workers of a gateway that was killed, which go on serving:
# port_ours native|compose VARIABLE NAME NUMBER
port_ours() {
  local value=${2,,} process=$3
  if [[ $1 == compose ]]; then # also of one that `docker compose up` started without us
    [[ $(compose ps 2>/dev/null) == *":${!value}->"* ]]
    return
  fi
  grep -qsx "$2=${!value}" "$state/up" && grep -qsx "STACK=$1" "$state/up" || return 1
  case $process in
    report | notification | delivery | photo) process+=-$4 ;;
  esac
  running "$native_dir/$process.pid" || [[ $process == gateway && -n $(gateway_orphans) ]]
}

# check_disk refuses a folder whose disk has less room than needed, unless it is in
# use already: check_disk FOLDER MIB VARIABLE
check_disk() {
  local folder=$1 free
  [[ ! -e $folder/bin/report-service ]] || return 0
  while [[ ! -d $folder ]]; do
    folder=$(dirname "$folder")
  done
  free=$(df -m --output=avail "$folder" 2>/dev/null | tail -n 1) || return 0
  ((free >= $2)) || fault "$1 must be on a disk with $2 MiB of room, not ${free//[[:space:]]/} MiB; choose another folder with $3=…"
}
