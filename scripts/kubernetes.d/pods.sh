# shellcheck shell=bash
# What happened to the pods, event by event, as the API server tells it. A look now
# and then would miss the moment at which too few are ready.

# watch_pods writes a line for each event of a pod: type, name, part, image, machine,
# phase, whether it is ready, and since when it ends.
watch_pods() {
  local line='{.type}|{.object.metadata.name}|{.object.metadata.labels.app\.kubernetes\.io/component}|{.object.spec.containers[0].image}|{.object.spec.nodeName}|{.object.status.phase}|{.object.status.conditions[?(@.type=="Ready")].status}|{.object.metadata.deletionTimestamp}{"\n"}'
  "$cache/kubectl" get pods --watch --output-watch-events -o "jsonpath=$line" -v 6 >"$state/pods" 2>"$state/watch.log" &
  pids+=("$!")
  await 60 'pods are watched' grep -q watch=true "$state/watch.log"
}

# events: how many there were so far.
events() { wc -l <"$state/pods"; }

# pods PART: those that there are, with image, machine, and 1 where one is ready.
pods() {
  awk -F'|' -v part="$1" '
    $3 != part { next }
    $1 == "DELETED" { delete pod[$2]; next }
    { pod[$2] = $4 " " ($5 == "" ? "-" : $5) " " ($7 == "True" && $8 == "") }
    END { for (name in pod) print name, pod[name] }' "$state/pods"
}

# settled PART NUMBER [VERSION]: so many there are of a part, all ready and of that
# version, and no other.
settled() {
  pods "$1" | awk -v number="$2" -v version="${3-}" '
    $4 && (version == "" || $2 ~ (":" version "$")) { good++ }
    END { exit !(NR == number && good == number) }'
}

# least EVENT PART: how many of a part were ready when there were fewest, since an event.
least() {
  awk -F'|' -v from="$1" -v part="$2" '
    function ready() { n = 0; for (name in up) n++; return n }
    NR == from + 1 { least = ready() }
    $3 == part && $1 != "DELETED" && $7 == "True" && $8 == "" { up[$2] }
    $3 == part && ($1 == "DELETED" || $7 != "True" || $8 != "") { delete up[$2] }
    NR > from && ready() < least { least = ready() }
    END { print (NR > from ? least : ready()) }' "$state/pods"
}

# kept EVENT STEP PART=NUMBER …: since an event, at least so many of each part were
# always ready.
kept() {
  local wanted number
  for wanted in "${@:3}"; do
    number=$(least "$1" "${wanted%=*}")
    ((number >= ${wanted#*=})) || die "$2: $number replicas of ${wanted%=*} were ready for a moment, ${wanted#*=} are wanted"
  done
}

# migrated EVENT VERSION: since an event, both databases were migrated to a version
# before there was a pod of it.
migrated() {
  awk -F'|' -v from="$1" -v image=":$2\$" '
    NR <= from || $4 !~ image { next }
    $3 !~ /^migrate-/ { exit }
    $6 == "Succeeded" { done[$3] }
    END { for (part in done) n++; exit n != 2 }' "$state/pods"
}

# zones PART: in how many its pods are.
zones() { pods "$1" | awk '{ print substr($3, 1, 1) }' | sort -u | wc -l; }
