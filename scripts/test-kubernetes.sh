#!/usr/bin/env bash
# Asks Kubernetes itself whether it takes the chart in deploy/helm: etcd and
# kube-apiserver run here as processes, with the definitions of KEDA, the Gateway
# API, the Prometheus Operator, the RabbitMQ Cluster Operator and CloudNativePG.
#
#   scripts/test-kubernetes.sh
#   scripts/test-kubernetes.sh build  only builds the programs
#
# They are built from the Go module proxy at the first use, which takes two
# processors some ten minutes, and kept in ~/.cache/cityconnect. The last line
# sums up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/stack.d/ports.sh
source scripts/stack.d/ports.sh

kubernetes=1.36.3 etcd=3.6.8 helm=3.22.0
# What defines the kinds that are not Kubernetes' own: module, version, folder.
definitions="
github.com/kedacore/keda/v2 v2.21.0 config/crd/bases
sigs.k8s.io/gateway-api v1.4.1 config/crd/standard
github.com/prometheus-operator/prometheus-operator v0.85.0 example/prometheus-operator-crd
github.com/rabbitmq/cluster-operator v1.14.0 config/crd/bases
github.com/cloudnative-pg/cloudnative-pg v1.27.1 config/crd/bases"
chart=deploy/helm/cityconnect
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cityconnect/kubernetes-$kubernetes

say() { echo "kubernetes: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# build compiles what is not there yet. The modules of Kubernetes' own repository
# are replaced by each other's folders in its go.mod, which nobody else has: here
# they are of the versions that were published with it.
build() {
  mkdir -p "$cache"
  local program missing=()
  for program in kube-apiserver kubectl; do
    [[ -x $cache/$program ]] || missing+=("k8s.io/kubernetes/cmd/$program")
  done
  if ((${#missing[@]} > 0)) || [[ ! -x $cache/etcd ]]; then
    say "building ${missing[*]##*/} etcd in $cache"
    local work
    work=$(mktemp -d)
    mkdir "$work/etcd"
    cat >"$work/etcd/main.go" <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO
    (
      cd "$work"
      export GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
      go mod init kubernetes 2>/dev/null
      local gomod
      gomod=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
      # shellcheck disable=SC2046 # a word for each module
      go mod edit -require="k8s.io/kubernetes@v$kubernetes" -require="go.etcd.io/etcd/server/v3@v$etcd" \
        $(sed -nE "s|^\s*(k8s.io/[a-z0-9-]+) => \./staging/.*|-replace=\1=\1@v0.${kubernetes#*.}|p" "$gomod")
      go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$kubernetes -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$kubernetes")" \
        -o "$cache/" "${missing[@]}" ./etcd
    )
    rm -rf "$work"
  fi
  [[ -x $cache/helm ]] || GOWORK=off GOBIN=$cache go install "helm.sh/helm/v3/cmd/helm@v$helm"
}

# start starts the servers, all on 127.0.0.1.
start() {
  state=$(mktemp -d)
  trap stop EXIT
  local ports
  mapfile -t ports < <(free_ports 3)
  openssl genrsa -out "$state/accounts.key" 2048 2>/dev/null
  (umask 077 && printf '%s,admin,admin,system:masters\n' "$(openssl rand -hex 16)" >"$state/tokens.csv")
  cat >"$state/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://127.0.0.1:${ports[2]}", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: "$(cut -d, -f1 "$state/tokens.csv")"}}]
contexts: [{name: here, context: {cluster: here, user: admin, namespace: city}}]
current-context: here
YAML
  export KUBECONFIG=$state/kubeconfig HELM_CACHE_HOME=$state/helm HELM_CONFIG_HOME=$state/helm HELM_DATA_HOME=$state/helm
  run etcd --data-dir "$state/etcd" --unsafe-no-fsync --log-level error \
    --listen-client-urls "http://127.0.0.1:${ports[0]}" --advertise-client-urls "http://127.0.0.1:${ports[0]}" \
    --listen-peer-urls "http://127.0.0.1:${ports[1]}" --initial-advertise-peer-urls "http://127.0.0.1:${ports[1]}" \
    --initial-cluster "default=http://127.0.0.1:${ports[1]}"
  run kube-apiserver --etcd-servers "http://127.0.0.1:${ports[0]}" --cert-dir "$state/certificates" \
    --bind-address 127.0.0.1 --secure-port "${ports[2]}" --endpoint-reconciler-type none --service-cluster-ip-range 10.96.0.0/16 \
    --authorization-mode Node,RBAC --token-auth-file "$state/tokens.csv" \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$state/accounts.key" \
    --service-account-signing-key-file "$state/accounts.key"
  await 60 'the API server answers' kubectl get --raw /readyz
}

# run PROGRAM …: starts a program in the background.
pids=()
run() {
  "$cache/$1" "${@:2}" >"$state/$1.log" 2>&1 &
  pids+=("$!")
}

stop() {
  local code=$?
  ((code == 0)) || tail -n 5 "$state"/*.log >&2
  kill -9 "${pids[@]}" 2>/dev/null || true # there is nothing to keep
  wait 2>/dev/null
  rm -rf "$state"
}

# await SECONDS WHAT COMMAND …
await() {
  local i
  for ((i = 0; i < $1 * 5; i++)); do
    if "${@:3}" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  die "not in $1 s: $2"
}

kubectl() { "$cache/kubectl" "$@"; }
helm() { "$cache/helm" "$@"; }

# define installs the definitions of kinds.
define() {
  local module version folder dir
  while read -r module version folder; do
    [[ -n $module ]] || continue
    dir=$(cd "$state" && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    rm -rf "$state/definitions"
    mkdir "$state/definitions"
    cp "$dir/$folder"/*.yaml "$state/definitions"
    rm -f "$state/definitions/kustomization.yaml"
    kubectl apply --server-side -f "$state/definitions" >/dev/null
  done <<<"$definitions"
}

# refused RENDERED PATTERN: the server does find what is wrong.
refused() {
  local out
  if out=$(kubectl apply --dry-run=server --validate=strict -f - <<<"$1" 2>&1) || [[ $out != *$2* ]]; then
    die "the server should have refused this because of $2: $out"
  fi
}

# accepted asks the server for each set of values whether it would take all that is
# rendered, and counts the objects. Its last steps make
# sure that it looks.
accepted() {
  local file rendered out objects=0
  kubectl create namespace city >/dev/null
  kubectl create serviceaccount default >/dev/null # as a controller would
  kubectl label namespace city pod-security.kubernetes.io/{enforce,warn}=restricted >/dev/null
  for file in "$chart"/ci/*.yaml; do
    rendered=$(helm template city "$chart" --namespace city --kube-version "$kubernetes" -f "$file")
    out=$(kubectl apply --dry-run=server --validate=strict -f - <<<"$rendered" 2>&1) || die "$file: $out"
    [[ $out != *Warning* ]] || die "$file: $out"
    objects=$((objects + $(wc -l <<<"$out")))
  done
  for file in "$chart"/examples/*.yaml; do
    out=$(kubectl apply --dry-run=server --validate=strict -f "$file" 2>&1) || die "$file: $out"
    objects=$((objects + $(wc -l <<<"$out")))
  done
  refused "${rendered/readinessProbe/readynessProbe}" readynessProbe
  refused "$(helm template city "$chart" --namespace city --kube-version "$kubernetes" -f "$chart/ci/everything.yaml" |
    sed 's/minReplicaCount: 2/minReplicaCount: two/')" minReplicaCount
  out=$(kubectl apply --dry-run=server -f - <<<"${rendered//allowPrivilegeEscalation: false/allowPrivilegeEscalation: true}" 2>&1) || die "$out"
  [[ $out == *'would violate PodSecurity "restricted'* ]] || die "the server does not look at the security of pods: $out"
  echo "kubernetes=$kubernetes accepted=$objects"
}

build
[[ ${1-} != build ]] || exit 0
start
define
accepted
