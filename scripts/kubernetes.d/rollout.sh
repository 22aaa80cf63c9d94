# shellcheck shell=bash
# A release with the least that must be given: it is installed, upgraded, its machines
# are emptied, it goes back, and it is removed.

# running VERSION: every part has its replicas, of that version; the gateway has one
# of its own.
running() {
  settled report 2 "$1" && settled notification 2 "$1" && settled delivery 1 "$1" && settled gateway 2
}

rollout() {
  local name from began machines machine i drains=() values=(-f "$chart/ci/minimal.yaml" --wait --timeout 5m)
  for name in report notification photo delivery migrate; do
    kubectl create secret generic "$name" --from-literal=database_url=none >/dev/null
  done
  kubectl create secret tls certificate --cert "$state/trust/tls.crt" --key "$state/trust/tls.key" >/dev/null
  watch_pods

  began=$SECONDS from=$(events)
  helm install city "$chart" "${values[@]}" --set image.tag=first >/dev/null
  await 120 'every part runs' running first
  migrated "$from" first || die "install: a program started before the migrations were done: $(cat "$state/pods")"
  for name in report notification gateway; do
    (($(zones "$name") == 2)) || die "install: both replicas of $name are in one zone: $(pods "$name")"
  done
  say "installed in $((SECONDS - began)) s: both migrations first, the replicas of each part in two zones"

  began=$SECONDS from=$(events)
  helm upgrade city "$chart" "${values[@]}" --set image.tag=second >/dev/null
  await 300 'every part has the second version' running second
  migrated "$from" second || die "upgrade: a program started before the migrations were done: $(tail -n "+$from" "$state/pods")"
  kept "$from" upgrade report=2 notification=2 gateway=2 delivery=1
  least_in_upgrade=$(least "$from" notification)
  say "upgraded in $((SECONDS - began)) s: both migrations first, never fewer replicas ready than wanted, $least_in_upgrade of notification-service"

  # Both machines at once: what is on them has no other replica.
  began=$SECONDS from=$(events)
  mapfile -t machines < <(pods notification | cut -d' ' -f3)
  for machine in "${machines[@]}"; do
    "$cache/kubectl" drain "$machine" --delete-emptydir-data --timeout 5m >"$state/drain-$machine.log" 2>&1 &
    drains+=("$!")
  done
  for i in "${!drains[@]}"; do
    wait "${drains[i]}" || die "${machines[i]} is not emptied: $(cat "$state/drain-${machines[i]}.log")"
  done
  await 120 'every part runs on other machines' running second
  for machine in "${machines[@]}"; do
    for name in report notification delivery gateway; do
      [[ $(pods "$name" | cut -d' ' -f3) != *"$machine"* ]] || die "drain: $name is still on $machine"
    done
    kubectl uncordon "$machine" >/dev/null
  done
  kept "$from" drain report=1 notification=1 gateway=1
  least_in_drain=$(least "$from" notification)
  evictions_refused=$(cat "$state"/drain-*.log | grep -c "would violate the pod's disruption budget" || true)
  ((evictions_refused > 0)) || die "drain: no eviction had to wait, so this shows nothing of the budgets: $(cat "$state"/drain-*.log)"
  say "both machines of notification-service emptied at once in $((SECONDS - began)) s: $evictions_refused evictions had to wait, $least_in_drain of 2 replicas always ready"

  began=$SECONDS from=$(events)
  helm rollback city 1 --wait --timeout 5m >/dev/null
  await 300 'every part has the first version again' running first
  kept "$from" rollback report=2 notification=2 gateway=2 delivery=1
  ! tail -n "+$((from + 1))" "$state/pods" | grep -q '|migrate-' || die "rollback: a migration ran"
  say "rolled back in $((SECONDS - began)) s: no migration, never fewer replicas ready than wanted"

  remove
}

# remove removes the release.
remove() {
  helm uninstall city --wait --timeout 5m >/dev/null
  local i
  for ((i = 0; i < 100; i++)); do
    [[ -n $(left) ]] || return 0
    sleep 0.2
  done
  die "removed, and left: $(left)"
}

# left: what there is of a release.
left() {
  kubectl get all,configmaps,networkpolicies,poddisruptionbudgets,scaledobjects -l app.kubernetes.io/instance=city \
    -o name --ignore-not-found || echo 'no answer'
}
