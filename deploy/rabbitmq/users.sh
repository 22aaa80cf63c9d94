#!/bin/bash
# Makes the broker's user of each service, with the rights that it needs and no
# other, through the management API:
#
#   users.sh HOST:PORT   (SECRETS is the folder of the passwords: password of the
#                         administrator, who is cityconnect unless RABBITMQ_ADMIN
#                         says otherwise, report_password, notification_password
#                         and photo_password; TOPOLOGY_PREFIX as for the services.
#                         With RABBITMQ_VHOST all is in that virtual host, whose
#                         queues have a copy on each node of a cluster)
#
# Running it again changes nothing but passwords and rights.
set -euo pipefail
if [[ ! ${1-} =~ ^[^/:]+:[0-9]+$ ]]; then
  echo 'users.sh: must be called with the host and port of the management API, such as users.sh 127.0.0.1:15672' >&2
  exit 1
fi
: "${SECRETS:?must be the folder of the passwords, such as secrets/rabbitmq}"
# A file that is missing would take the passwords away from users that have one.
for name in password report_password notification_password photo_password; do
  if [[ ! -s $SECRETS/$name ]]; then
    echo "users.sh: $SECRETS/$name is missing or empty; deploy/secrets.sh DIR makes it in DIR/rabbitmq" >&2
    exit 1
  fi
done
host=${1%:*} port=${1##*:}
vhost=${RABBITMQ_VHOST:-%2F}
admin=${RABBITMQ_ADMIN:-cityconnect}
authorization=$(printf '%s:%s' "$admin" "$(<"$SECRETS/password")" | base64 | tr -d '\n')

# send METHOD PATH BODY: curl may be missing where this runs. All of this may be
# repeated, and is, for a broker that is busy closes the connection without an
# answer after a minute.
send() {
  local tries status rest
  for tries in {1..5}; do
    exec 3<>"/dev/tcp/$host/$port"
    printf '%s /api/%s HTTP/1.0\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' \
      "$1" "$2" "$host" "$authorization" "${#3}" "$3" >&3
    read -r -t 65 _ status rest <&3 || status="nothing in $tries tries"
    exec 3>&-
    [[ $status == nothing* ]] || break
  done
  [[ $status == 2* ]] || {
    echo "users.sh: the broker answered $status ${rest%$'\r'} to $1 /api/$2" >&2
    [[ $status != 401 ]] || echo "users.sh: the password of $admin must be in $SECRETS/password; RABBITMQ_ADMIN names another administrator" >&2
    exit 1
  }
}

put() { send PUT "$@"; }

# user NAME TAGS CONFIGURE WRITE READ: the rights are patterns of names.
user() {
  put "users/cityconnect_$1" "{\"password\":\"$(<"$SECRETS/$1_password")\",\"tags\":\"$2\"}"
  put "permissions/$vhost/cityconnect_$1" "{\"configure\":\"$3\",\"write\":\"$4\",\"read\":\"$5\"}"
}

if [[ -n ${RABBITMQ_VHOST:-} ]]; then
  # Versions before 4 take the type of queues from definitions alone, and only for a
  # virtual host that is new; later ones also for one that is there.
  send POST definitions "{\"vhosts\":[{\"name\":\"$vhost\",\"metadata\":{\"default_queue_type\":\"quorum\"}}]}"
  put "vhosts/$vhost" '{"default_queue_type":"quorum"}'
  put "permissions/$vhost/$admin" '{"configure":".*","write":".*","read":".*"}'
fi

prefix=^${TOPOLOGY_PREFIX:-}
prefix=${prefix//./\\\\.} # a dot of the name, in a string of JSON

# Both declare the exchanges of messages and of dead letters, whoever comes first.
exchanges='cityconnect\\.notifications(\\.dlx)?'
wake='cityconnect\\.wake(\\..+)?'
outbox='cityconnect\\.outbox'
live='cityconnect\\.live(\\..+)?'
retry='cityconnect\\.retry\\..+'
queues='queue\\.[a-z_]+(\\.dlq)?'

# report-service publishes, wakes its other replicas, and recognises the broker. It looks
# whether the queue of photos is read: RabbitMQ 4.3 and later want a right for that.
user report '' "$prefix($exchanges|$wake|$outbox)\$" "$prefix(cityconnect\\\\.notifications|$wake)\$" "$prefix($wake|queue\\\\.photo_checks)\$"

# The photo worker has its own queue, puts messages off and gives them up, wakes
# report-service, and tells how far it is. Whatever queue it binds, it gets no
# message but those of uploads, and manifests, which say nothing of their messages:
# it decodes what strangers send.
photos='queue\\.(photo_checks(\\.dlq)?|reconciliation_photos)'
telling='cityconnect\\.(wake|progress)'
user photo policymaker "$prefix($exchanges|$telling|$retry|$photos)\$" \
  "^(amq\\\\.default|${prefix#^}(cityconnect\\\\.notifications\\\\.dlx|$telling|$retry|$photos))\$" \
  "$prefix($exchanges|$retry|$photos)\$"
# RabbitMQ 4.3 and later know topic permissions only of exchanges that are there. This
# one is made as the services make it.
notifications=${TOPOLOGY_PREFIX:-}cityconnect.notifications
put "exchanges/$vhost/$notifications" '{"type":"topic","durable":true}'
put "topic-permissions/$vhost/cityconnect_photo" \
  "{\"exchange\":\"$notifications\",\"write\":\"^\$\",\"read\":\"^(report\\\\.photo\\\\.uploaded|reconciliation\\\\.manifest)\$\"}"

# notification-service owns the queues, applies policies to them, and sends
# messages back to them through the default exchange.
progress='cityconnect\\.progress'
user notification policymaker "$prefix($exchanges|$live|$progress|$retry|$queues)\$" \
  "^(amq\\\\.default|${prefix#^}(cityconnect\\\\.notifications\\\\.dlx|$live|$retry|$queues))\$" \
  "$prefix($exchanges|$live|$progress|$retry|$queues)\$"
