#!/usr/bin/env bash
# Walks the chart in deploy/helm on Kubernetes itself. etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler and KEDA run here as processes, all on
# 127.0.0.1; kwok plays machines in three zones, on which pods get ready and nothing
# runs; RabbitMQ is a real one.
#
#   scripts/test-kubernetes.sh           everything
#   scripts/test-kubernetes.sh accepted  only whether the server takes what is rendered
#   scripts/test-kubernetes.sh build     only builds the programs
#
# They are built from the Go module proxy at the first use, which takes two
# processors some twenty minutes, and kept in ~/.cache/cityconnect. TEST_RABBITMQ_URL
# and TEST_RABBITMQ_MANAGEMENT_URL name the broker, or one is started. The last
# line sums up.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
parts=scripts/kubernetes.d
# shellcheck source=stack.d/ports.sh
source scripts/stack.d/ports.sh
# shellcheck source=test-servers.sh
source scripts/test-servers.sh

kubernetes=1.36.3 etcd=3.6.8 helm=3.22.0 kwok=0.8.0 keda=2.21.0
chart=deploy/helm/cityconnect
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cityconnect/kubernetes-$kubernetes

say() { echo "kubernetes: $*" >&2; }
die() {
  say "$*"
  exit 1
}
kubectl() { "$cache/kubectl" "$@"; }
helm() { "$cache/helm" "$@"; }

# module PATH VERSION: the folder of a Go module.
module() { (cd / && GOWORK=off go mod download -json "$1@$2") | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'; }

# shellcheck source=kubernetes.d/build.sh
source "$parts/build.sh"
# shellcheck source=kubernetes.d/servers.sh
source "$parts/servers.sh"
# shellcheck source=kubernetes.d/accepted.sh
source "$parts/accepted.sh"
# shellcheck source=kubernetes.d/pods.sh
source "$parts/pods.sh"
# shellcheck source=kubernetes.d/rollout.sh
source "$parts/rollout.sh"
# shellcheck source=kubernetes.d/processors.sh
source "$parts/processors.sh"
# shellcheck source=kubernetes.d/messages.sh
source "$parts/messages.sh"

case ${1:-walk} in
  build)
    build_server
    build_cluster
    ;;
  accepted)
    build_server
    start_server
    accepted
    echo "kubernetes=$kubernetes accepted=$objects"
    ;;
  walk)
    build_server
    build_cluster
    start_server
    accepted
    start_cluster
    rollout
    processors
    messages
    echo "kubernetes=$kubernetes accepted=$objects least_in_upgrade=$least_in_upgrade least_in_drain=$least_in_drain" \
      "evictions_refused=$evictions_refused scaled=$scaled scaled_by_messages=$scaled_by_messages seconds=$SECONDS"
    ;;
  *)
    sed -n '/^#   /s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
