# shellcheck shell=bash
# The processes, all on 127.0.0.1, and their end.

# run PROGRAM …: starts one of the programs in the background.
pids=()
run() {
  "$cache/$1" "${@:2}" >"$state/$1.log" 2>&1 &
  pids+=("$!")
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

stop() {
  local code=$?
  ((code == 0)) || tail -n 5 "$state"/*.log >&2
  [[ ! -x $state/backlog ]] || "$state/backlog" remove "$vhost" || true
  kill -9 "${pids[@]}" 2>/dev/null || true # there is nothing to keep
  wait 2>/dev/null
  [[ -z ${took_servers-} ]] || leave_servers
  rm -rf "$state"
}

# start_server starts etcd and the API server.
start_server() {
  state=$(mktemp -d)
  trap stop EXIT
  mapfile -t ports < <(free_ports 10)
  certificates
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
    --service-account-signing-key-file "$state/accounts.key" \
    --requestheader-client-ca-file "$state/trust/ca.crt" --requestheader-allowed-names front-proxy \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$state/trust/tls.crt" --proxy-client-key-file "$state/trust/tls.key"
  await 60 'the API server answers' kubectl get --raw /readyz
}

# certificates makes an authority, and one certificate for all that must know each
# other by it: the API server where it passes a request on, KEDA's two programs, and
# the chart's gateway.
certificates() {
  mkdir "$state/trust"
  (
    cd "$state/trust"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=walk -keyout ca.key -out ca.crt
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=front-proxy -keyout tls.key -out tls.csr
    openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out tls.crt \
      -extfile <(echo 'subjectAltName=DNS:localhost,DNS:keda-metrics-apiserver.keda.svc')
  ) 2>/dev/null
}

# start_cluster starts what acts on the objects, and makes two machines in each of
# three zones. A replica that does not answer in time is not tested here: machines
# that a busy processor keeps waiting are not given up.
start_cluster() {
  local file zone machine
  run kube-controller-manager --kubeconfig "$KUBECONFIG" --bind-address 127.0.0.1 --secure-port "${ports[3]}" \
    --leader-elect=false --service-account-private-key-file "$state/accounts.key" \
    --node-monitor-grace-period 10m --horizontal-pod-autoscaler-sync-period 5s
  run kube-scheduler --kubeconfig "$KUBECONFIG" --bind-address 127.0.0.1 --secure-port "${ports[4]}" --leader-elect=false

  # kwok's own rules for machines and pods. Only, a pod takes some seconds to get
  # ready: so two that are taken away together are missed together.
  for file in "$(module sigs.k8s.io/kwok "v$kwok")"/kustomize/stage/{node/fast,node/heartbeat-with-lease,pod/fast}/*.yaml; do
    if [[ $file != */kustomization.yaml ]]; then
      echo ---
      sed '/^  name: pod-ready$/,/^spec:$/ s/^spec:$/spec:\n  delay: {durationMilliseconds: 5000}/' "$file"
    fi
  done >"$state/stages.yaml"
  run kwok --kubeconfig "$KUBECONFIG" --config "$state/stages.yaml" --manage-all-nodes=true --server-address "127.0.0.1:${ports[5]}"

  for zone in a b c; do
    for machine in 1 2; do
      cat <<YAML
---
apiVersion: v1
kind: Node
metadata:
  name: $zone$machine
  labels: {kubernetes.io/hostname: $zone$machine, topology.kubernetes.io/zone: $zone, disk: fast}
status:
  allocatable: {cpu: "16", memory: 32Gi, pods: "100"}
  capacity: {cpu: "16", memory: 32Gi, pods: "100"}
YAML
    done
  done | kubectl create -f - >/dev/null
  await 120 'all machines are ready' kubectl wait --for=condition=Ready node --all --timeout=1s
}
