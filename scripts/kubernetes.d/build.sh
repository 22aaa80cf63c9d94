# shellcheck shell=bash
# The programs, built outside of this project: none of their modules is one of ours.

# build_server builds what is asked whether it takes the chart. The modules of
# Kubernetes' own repository are replaced by each other's folders in its go.mod,
# which nobody else has: here they are of the versions that were published with it.
build_server() { build_kubernetes kube-apiserver kubectl; }

# build_cluster builds what acts on it.
build_cluster() {
  build_kubernetes kube-controller-manager kube-scheduler
  if [[ ! -x $cache/kwok ]]; then
    say "building kwok in $cache"
    GOWORK=off GOBIN=$cache go install "sigs.k8s.io/kwok/cmd/kwok@v$kwok"
  fi
  [[ -x $cache/keda-adapter ]] || build_keda
}

# build_kubernetes PROGRAM …: those of Kubernetes that are not there yet, etcd, and helm.
build_kubernetes() {
  mkdir -p "$cache"
  local program missing=()
  for program in "$@"; do
    [[ -x $cache/$program ]] || missing+=("k8s.io/kubernetes/cmd/$program")
  done
  [[ -x $cache/etcd ]] || missing+=(./etcd)
  if ((${#missing[@]} > 0)); then
    say "building ${missing[*]##*/} in $cache"
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
        -o "$cache/" "${missing[@]}"
    )
    rm -rf "$work"
  fi
  [[ -x $cache/helm ]] || GOWORK=off GOBIN=$cache go install "helm.sh/helm/v3/cmd/helm@v$helm"
}

# build_keda builds KEDA's operator and its server of metrics. Its seventy kinds of
# triggers are one package that has the client of every cloud: those that the chart
# has no use for are left out, which saves most of the time, and the rest is as it
# was published. The server's own metrics would be offered to all addresses.
build_keda() {
  say "building KEDA in $cache"
  local published work
  published=$(module github.com/kedacore/keda/v2 "v$keda")
  work=$(mktemp -d)
  cp -r "$published/." "$work"
  chmod -R u+w "$work"
  (
    cd "$work"
    find pkg/scalers -maxdepth 1 -name '*.go' ! -name scaler.go ! -name rabbitmq_scaler.go ! -name cpu_memory_scaler.go -delete
    rm pkg/scalers/azure/azure_{data_explorer,eventhub,eventhub_checkpoint,storage}.go pkg/scalers/aws/aws_sigv4.go
    sed -i -E '/^\tcase "/ { N; /NewRabbitMQ|NewCPUMemory/!d }' pkg/scaling/scalers_builder.go
    sed -i 's/fmt.Sprintf(":%v", metricsAPIServerPort)/fmt.Sprintf("127.0.0.1:%v", metricsAPIServerPort)/' cmd/adapter/main.go
    export GOWORK=off CGO_ENABLED=0
    go build -trimpath -ldflags '-s -w' -o "$cache/keda-operator" ./cmd/operator
    go build -trimpath -ldflags '-s -w' -o "$cache/keda-adapter" ./cmd/adapter
  )
  rm -rf "$work"
}
