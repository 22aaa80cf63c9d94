# shellcheck shell=bash
# A release with all that can be switched on, scaled by KEDA as the messages in a
# real RabbitMQ ask for it.

vhost=kubernetes-walk-$$

# start_broker takes the tests' RabbitMQ, or starts it.
start_broker() {
  if [[ -z ${TEST_RABBITMQ_MANAGEMENT_URL-} ]]; then
    took_servers=yes
    take_servers
  fi
  go build -o "$state/backlog" ./scripts/cmd/backlog
  "$state/backlog" make "$vhost" bandung.
}

# start_keda starts KEDA's operator, and its server of metrics behind the API server:
# both outside of the cluster, where a Service of the type ExternalName leads to them.
start_keda() {
  export WATCH_NAMESPACE='' KEDA_CLUSTER_OBJECT_NAMESPACE=keda POD_NAMESPACE=keda
  kubectl create namespace keda >/dev/null
  run keda-operator --metrics-bind-address 0 --health-probe-bind-address "127.0.0.1:${ports[6]}" \
    --metrics-service-bind-address "127.0.0.1:${ports[7]}" --cert-dir "$state/trust"
  run keda-adapter --bind-address 127.0.0.1 --secure-port "${ports[8]}" --port "${ports[9]}" \
    --metrics-service-address "localhost:${ports[7]}" --cert-dir "$state/trust" \
    --tls-cert-file "$state/trust/tls.crt" --tls-private-key-file "$state/trust/tls.key" \
    --lister-kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: keda-metrics-apiserver, namespace: keda}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {name: keda-metrics-apiserver, namespace: keda, port: ${ports[8]}}
  caBundle: $(base64 -w 0 "$state/trust/ca.crt")
YAML
  await 120 "KEDA's metrics are served" kubectl wait --for=condition=Available --timeout=1s apiservice/v1beta1.external.metrics.k8s.io
}

# depth PART MESSAGES: KEDA counts so many in the part's queues.
depth() {
  local metric
  metric=$(kubectl get hpa "keda-hpa-city-$1" -o 'jsonpath={.spec.metrics[?(@.type=="External")].external.metric.name}')
  [[ $(kubectl get --raw "/apis/external.metrics.k8s.io/v1beta1/namespaces/city/$metric?labelSelector=scaledobject.keda.sh%2Fname%3Dcity-$1") == *"\"value\":\"$2\""* ]]
}

messages() {
  local began rules name values=(-f "$chart/ci/everything.yaml" -f "$state/values.yaml" --wait --timeout 5m)
  start_broker
  start_keda
  kubectl create priorityclass important --value 1000 >/dev/null
  kubectl create secret generic rabbitmq-management --from-literal=host="$TEST_RABBITMQ_MANAGEMENT_URL" >/dev/null
  kubectl apply -f "$chart/examples/keda.yaml" >/dev/null
  # Nobody here gives a Service its balancer, or a claim its volume.
  cat >"$state/values.yaml" <<YAML
keda: {vhost: $vhost}
gateway: {service: {type: ClusterIP}}
notification: {extraVolumes: [], extraVolumeMounts: []}
YAML

  helm install city "$chart" "${values[@]}" >/dev/null
  await 120 'each part has the replicas that are the least' scaled_to notification=2 photo=1 report=3
  rules=$(kubectl get hpa keda-hpa-city-notification -o 'jsonpath={.spec.minReplicas} to {.spec.maxReplicas} replicas, {.spec.behavior.scaleDown.policies[*].value} less in {.spec.behavior.scaleDown.policies[*].periodSeconds} s after {.spec.behavior.scaleDown.stabilizationWindowSeconds} s')
  [[ $rules == '2 to 6 replicas, 1 less in 120 s after 600 s' ]] || die "KEDA's autoscaler of notification-service has other rules than the chart: $rules"
  for name in notification photo; do
    usage "$name" 25
    await 120 "KEDA counts the messages of $name" depth "$name" 0
    await 120 "the autoscaler of $name has figures" reason "keda-hpa-city-$name" ScalingActive ValidMetricFound
  done
  say "KEDA scales notification-service: $rules"

  # Dead letters, and the messages of another city, count for nobody.
  began=$SECONDS
  "$state/backlog" put "$vhost" bandung.queue.status_updates.dlq 9000
  "$state/backlog" put "$vhost" queue.status_updates 9000
  "$state/backlog" put "$vhost" bandung.queue.status_updates 8000
  "$state/backlog" put "$vhost" bandung.queue.comments 4000
  await 60 'KEDA counts 12,000 messages' depth notification 12k
  await 120 'notification-service has 3 replicas' scaled_to notification=3 photo=1 report=3
  say "12,000 messages in two of its queues: 3 replicas of notification-service after $((SECONDS - began)) s, and no other part"

  began=$SECONDS
  "$state/backlog" put "$vhost" bandung.queue.photo_checks 250
  await 120 'photo-worker has 3 replicas' scaled_to notification=3 photo=3 report=3
  say "250 photos wait: 3 replicas of photo-worker after $((SECONDS - began)) s, and no other part"

  began=$SECONDS
  "$state/backlog" put "$vhost" bandung.queue.status_updates 28000
  await 120 'notification-service has 6 replicas' scaled_to notification=6 photo=3 report=3
  await 60 'more replicas are refused' reason keda-hpa-city-notification ScalingLimited TooManyReplicas
  say "40,000 messages: 6 replicas after $((SECONDS - began)) s, and no more than the chart allows"

  usage notification 25
  "$state/backlog" purge "$vhost"
  await 60 'KEDA counts no message' depth notification 0
  await 120 'the autoscaler waits' reason keda-hpa-city-notification AbleToScale ScaleDownStabilized
  settled notification 6 || die "replicas are taken away at once: $(pods notification)"
  scaled_by_messages=2-3-6
  say 'no message any more: the autoscaler begins its ten minutes, with 6 replicas'
  remove
}
