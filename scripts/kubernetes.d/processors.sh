# shellcheck shell=bash
# A release that Kubernetes itself scales, by the processors that its pods are said to
# use.

# define_usage makes room for what a metrics server would say of processors: nothing
# runs in the pods, so the walk says it.
define_usage() {
  kubectl apply -f - >/dev/null <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for this walk"}
spec:
  group: metrics.k8s.io
  scope: Namespaced
  names: {kind: PodMetrics, listKind: PodMetricsList, plural: pods}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
  await 60 'the usage of processors has a place' kubectl wait --for=condition=Established --timeout=1s crd/pods.metrics.k8s.io
}

# usage PART MILLICORES: each pod that a part has now uses so much.
usage() {
  local name
  while read -r name _; do
    cat <<YAML
---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata:
  name: $name
  labels: {app.kubernetes.io/name: cityconnect, app.kubernetes.io/instance: city, app.kubernetes.io/component: $1}
timestamp: "$(date -u +%FT%TZ)"
window: 0s
containers: [{name: program, usage: {cpu: $2m, memory: 64Mi}}]
YAML
  done < <(pods "$1") | kubectl apply -f - >/dev/null
}

# reason AUTOSCALER CONDITION REASON: the autoscaler gives this reason.
reason() { [[ $(kubectl get hpa "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].reason}") == "$3" ]]; }

# scaled_to PART=NUMBER …: each of the parts has so many replicas.
scaled_to() {
  local wanted
  for wanted in "$@"; do
    settled "${wanted%=*}" "${wanted#*=}" || return
  done
}

processors() {
  local from began grown name values=(-f "$chart/ci/minimal.yaml" -f "$state/values.yaml" --wait --timeout 5m)
  define_usage
  cat >"$state/values.yaml" <<'YAML'
image: {tag: first}
report: {autoscaling: {enabled: true}}
notification: {autoscaling: {enabled: true, max: 6}}
YAML

  helm install city "$chart" "${values[@]}" >/dev/null
  await 120 'each part has the replicas that are the least' scaled_to report=2 notification=2
  for name in report notification; do
    usage "$name" 25
    await 120 "the autoscaler of $name has figures" reason "city-$name" ScalingActive ValidMetricFound
  done

  # Of the 250 millicores that a pod asks for, 70 % are wanted.
  began=$SECONDS
  usage notification 225
  await 120 'notification-service has 3 replicas' scaled_to report=2 notification=3
  usage notification 150
  say "90 % of the processors that it asks for in use: 3 replicas of notification-service after $((SECONDS - began)) s, and no other part"

  from=$(events)
  helm upgrade city "$chart" "${values[@]}" --set image.tag=second >/dev/null
  await 300 'all replicas have the second version' settled notification 3 second
  kept "$from" 'upgrade of a scaled release' report=2 notification=3 gateway=2 delivery=1
  say "upgraded while scaled: 3 replicas always ready"

  began=$SECONDS
  usage notification 600
  await 120 'notification-service has 6 replicas' scaled_to report=2 notification=6
  usage notification 600
  await 60 'more replicas are refused' reason city-notification ScalingLimited TooManyReplicas
  (($(zones notification) == 3)) || die "six replicas are in $(zones notification) zones: $(pods notification)"
  say "240 % in use: 6 replicas after $((SECONDS - began)) s, in three zones, and no more than the chart allows"

  # Fewer again. First the rule that nothing is taken away for ten minutes, of which two
  # are waited for; then, with that rule switched off, the one of a replica at a time. It
  # counts from two minutes ago, when the last replicas must have been there.
  grown=$SECONDS from=$(events)
  usage notification 25
  await 120 'the autoscaler waits' reason city-notification AbleToScale ScaleDownStabilized
  while ((SECONDS - grown < 135)); do
    sleep 1
  done
  kept "$from" 'the ten minutes before fewer replicas' notification=6
  say "idle: 6 replicas for $((SECONDS - grown)) s, of the ten minutes that the autoscaler waits"
  name=$(kubectl get hpa city-notification -o 'jsonpath={.spec.behavior.scaleDown.policies[*].value} in {.spec.behavior.scaleDown.policies[*].periodSeconds} s after {.spec.behavior.scaleDown.stabilizationWindowSeconds} s')
  [[ $name == '1 in 120 s after 600 s' ]] || die "the autoscaler takes away $name"
  kubectl patch hpa city-notification --type merge -p '{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}}}}' >/dev/null
  await 120 'one replica is taken away' settled notification 5
  await 60 'a second one has to wait' reason city-notification ScalingLimited ScaleDownLimit
  settled notification 5 || die "more than one replica was taken away: $(pods notification)"
  scaled=2-3-6-5
  say 'without them: 5 replicas at once, and the next has to wait'
  remove
}
