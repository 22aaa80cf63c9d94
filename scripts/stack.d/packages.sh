# shellcheck shell=bash
# Installing the distribution's servers where they are missing. Only their
# programs are wanted: no system server is started, enabled or configured.

# missing_packages prints the Debian packages whose programs are not there. The
# servers are looked for where platform/testing/devserver finds them.
missing_packages() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || compgen -G '/usr/pgsql-*/bin/initdb' >/dev/null ||
    compgen -G '/opt/homebrew/opt/postgresql@*/bin/initdb' >/dev/null || has initdb || echo postgresql
  compgen -G '/usr/lib/rabbitmq/bin/rabbitmq-server' >/dev/null || has rabbitmq-server || echo rabbitmq-server
  find_program nginx >/dev/null || echo nginx-light
  find_program openssl >/dev/null || echo openssl
}

# missing_for_tests prints the packages that only tests need: for `make test` the
# browser that they drive; for `make check` also a whole Chromium and Firefox, Node.js
# for the page's own tests, what cameras, virus scanners and mail servers of others do,
# curl and jq.
# missing_for_tests test|check
missing_for_tests() {
  [[ $1 != servers ]] || return 0
  grep -qs '^ID=debian' /etc/os-release || return 0 # elsewhere no Chromium runs in a container
  find_program chromium-headless-shell >/dev/null || echo chromium-headless-shell
  [[ $1 == check ]] || return 0
  find_program chromium >/dev/null || echo chromium
  find_program firefox-esr >/dev/null || find_program firefox >/dev/null || echo firefox-esr
  find_program npm >/dev/null || printf '%s\n' nodejs npm
  # Photos as others make them, what others find in them, and a virus scanner.
  find_program identify >/dev/null || echo imagemagick # other packages have a program "convert", too
  find_program exiftool >/dev/null || echo libimage-exiftool-perl
  find_program clamd >/dev/null || echo clamav-daemon
  # A mail server whose bounces come back. A machine has one at most.
  find_program exim4 >/dev/null || find_program sendmail >/dev/null || echo exim4-daemon-light
  find_program curl >/dev/null || echo curl
  find_program jq >/dev/null || echo jq # as the manuals use it
}

# find_program prints a program's path; administrators' folders are searched
# even when they are not in PATH.
find_program() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1"; }

# need_packages installs what is missing, or says what to type. Its arguments
# are packages that are wanted besides.
need_packages() {
  local packages
  mapfile -t packages < <(missing_packages)
  packages+=("$@")
  ((${#packages[@]} == 0)) && return
  if ! has apt-get; then
    die "not installed: ${packages[*]}. Install these and try again, for instance:
  brew install postgresql@17 rabbitmq nginx openssl
  dnf install postgresql-server rabbitmq-server nginx openssl"
  fi
  if ! is_root; then
    die "not installed: ${packages[*]}. Install these without starting any system server, then try again:
$(manual_commands "${packages[@]}")"
  fi
  timed "installed ${packages[*]}: programs only, no system server is started" install_packages "${packages[@]}"
}

manual_commands() {
  cat <<TEXT
  sudo install -d /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' | sudo tee /etc/postgresql-common/createcluster.d/cityconnect.conf
  printf '#!/bin/sh\nexit 101\n' | sudo install -m 755 /dev/stdin /usr/sbin/policy-rc.d
  sudo apt-get update
  sudo apt-get install -y --no-install-recommends --no-upgrade $*
  sudo rm /usr/sbin/policy-rc.d /etc/postgresql-common/createcluster.d/cityconnect.conf
TEXT
}

# install_packages runs apt with every server's start denied.
install_packages() {
  local log=$state/logs/apt.log
  mkdir -p "$state/logs"
  deny_server_starts
  trap allow_server_starts EXIT
  {
    apt-get update &&
      DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get install -y --no-install-recommends --no-upgrade "$@"
  } >"$log" 2>&1 9>&- || {
    tail -n 10 "$log" >&2
    die "apt-get could not install $*; its log is $log"
  }
  keep_disabled "$@"
  allow_server_starts
  trap - EXIT
}

policy=/usr/sbin/policy-rc.d
cluster_conf=/etc/postgresql-common/createcluster.d/cityconnect.conf

# deny_server_starts makes Debian's maintainer scripts start nothing and create
# no database cluster. A policy that is already there is put back afterwards.
deny_server_starts() {
  if [[ -e $policy && ! -e $policy.cityconnect ]]; then
    mv "$policy" "$policy.cityconnect"
  fi
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  mkdir -p "$(dirname "$cluster_conf")"
  echo 'create_main_cluster = false' >"$cluster_conf"
}

allow_server_starts() {
  rm -f "$policy" "$cluster_conf"
  if [[ -e $policy.cityconnect ]]; then
    mv "$policy.cityconnect" "$policy"
  fi
}

# keep_disabled stops systemd from starting, at the next boot, the servers that
# we have just installed for their programs only.
keep_disabled() {
  [[ -d /run/systemd/system ]] || return 0
  local package
  for package in "$@"; do
    case $package in
      rabbitmq-server | postgresql) systemctl disable "$package" ;;
      etcd-server) systemctl disable etcd ;;
      nginx-light) systemctl disable nginx ;;
      exim4-daemon-light) systemctl disable exim4 ;;
    esac
  done >/dev/null 2>&1 9>&- || true
}
