# shellcheck shell=bash
# Whether the API server takes what the chart makes, with the definitions of KEDA,
# the Gateway API, the Prometheus Operator, the RabbitMQ Cluster Operator and
# CloudNativePG.

# What defines the kinds that are not Kubernetes' own: module, version, folder.
definitions="
github.com/kedacore/keda/v2 v$keda config/crd/bases
sigs.k8s.io/gateway-api v1.4.1 config/crd/standard
github.com/prometheus-operator/prometheus-operator v0.85.0 example/prometheus-operator-crd
github.com/rabbitmq/cluster-operator v1.14.0 config/crd/bases
github.com/cloudnative-pg/cloudnative-pg v1.27.1 config/crd/bases"

# define installs the definitions of kinds.
define() {
  local path version folder
  while read -r path version folder; do
    [[ -n $path ]] || continue
    rm -rf "$state/definitions"
    mkdir "$state/definitions"
    cp "$(module "$path" "$version")/$folder"/*.yaml "$state/definitions"
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
# rendered, and counts the objects. Its last steps make sure that it looks.
accepted() {
  local file rendered out
  objects=0
  define
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
  say "$objects objects are accepted"
}
