# shellcheck shell=bash
# The same stack with Docker Compose, and the choice between the two.

# stack_kind prints native or compose: what STACK says (or the stack that is up
# said), else Compose where a Docker engine answers.
stack_kind() {
  case ${STACK:-} in
    native | compose) echo "$STACK" ;;
    '')
      if docker_answers; then
        echo compose
      else
        echo native
      fi
      ;;
    *) die "STACK must be native or compose, not '$STACK'" ;;
  esac
}

docker_answers() { has docker && docker compose version && timeout 10 docker info; } >/dev/null 2>&1

# compose runs docker compose on the project's file, and on that of a cluster.
compose() {
  (
    cd "$root"
    if is_cluster; then
      set -- -f docker-compose.yml -f deploy/compose.cluster.yml "$@"
    fi
    docker compose "$@"
  ) 9>&-
}

# That of the containers, as docker-compose.yml has it; this machine has the first
# address in it.
stack_subnet=${STACK_SUBNET:-10.231.87.0/24}

# Those of the broker on this machine. The native stack's are chosen.
rabbitmq_port=${RABBITMQ_PORT:-5672}
rabbitmq_management_port=${RABBITMQ_MANAGEMENT_PORT:-15672}

compose_receiver() { echo "${stack_subnet%.*}.1"; }

compose_up() {
  ! is_patroni || die "POSTGRES_NODES=3 needs the native stack (STACK=native), for there is no official image of PostgreSQL with Patroni 4"
  # One of three has no majority, and its queues would stand still.
  is_cluster || ! grep -qsx RABBITMQ_NODES=3 "$state/nodes" ||
    die "RABBITMQ_NODES=1: the data is on three nodes; leave RABBITMQ_NODES out, or remove the data with scripts/stack clean"
  docker_answers || die "no Docker engine with Compose answers; start one, or use STACK=native"
  if ((replicas > 1)); then
    # Several containers cannot share one port of this machine.
    report_operations_port=0 notification_operations_port=0 delivery_operations_port=0 photo_operations_port=0
    export REPORT_PORT=0 NOTIFICATION_PORT=0
  fi
  export REPORT_OPERATIONS_PORT=$report_operations_port NOTIFICATION_OPERATIONS_PORT=$notification_operations_port \
    DELIVERY_OPERATIONS_PORT=$delivery_operations_port PHOTO_OPERATIONS_PORT=$photo_operations_port MAILBOX_PORT=$mailbox_port \
    RABBITMQ_PORT=$rabbitmq_port RABBITMQ_MANAGEMENT_PORT=$rabbitmq_management_port
  if [[ ${AUTH_MODE:-dev} == dev ]]; then # receivers of webhooks may be on this machine
    export WEBHOOK_ALLOW_HTTP=${WEBHOOK_ALLOW_HTTP:-true} WEBHOOK_ALLOW_NETWORKS=${WEBHOOK_ALLOW_NETWORKS:-$stack_subnet}
  fi
  remember_nodes
  local version revision # what the programs say that they are
  read -r version revision < <("$root/scripts/version.sh") || true
  export BUILD_VERSION=${BUILD_VERSION:-$version} BUILD_REVISION=${BUILD_REVISION:-$revision}
  timed "built the images" logged build compose build
  timed "started the containers" logged up compose up -d --wait --remove-orphans \
    --scale report-service="$replicas" --scale notification-service="$replicas" --scale delivery-worker="$replicas" \
    --scale photo-worker="$replicas"
  remember compose
  say "up: $(page_address) ($SECONDS s)"
  ! own_mailbox || say "mails: $(mailbox_address)"
}

compose_down() {
  compose --profile metrics down --remove-orphans >&2
  forget
}

compose_clean() {
  compose --profile metrics down -v --remove-orphans >&2
  forget
  forget_nodes
}

compose_stop() { compose stop "$@" >&2; }

compose_start() { compose start "$@" >&2; }

compose_status() {
  compose ps
  broker_hint
}

compose_management() { echo "http://127.0.0.1:$rabbitmq_management_port"; }

# compose_broker prints the broker's URL as this machine reaches it. One of your own
# (RABBITMQ_URL) is the same everywhere.
compose_broker() { compose_secret rabbitmq/rabbitmq_url | sed -E "s/@rabbitmq:5672[^/]*/@127.0.0.1:$rabbitmq_port/"; }

# compose_secret prints a secret from its volume, whatever runs.
compose_secret() { compose run --rm -T --no-deps --entrypoint cat secrets "/secrets/$1" 2>/dev/null; }

compose_logs() { compose logs --tail 20 -f "$@"; }
