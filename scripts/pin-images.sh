#!/usr/bin/env bash
# Pins the images that Compose uses and builds on: for each one, it writes into
# .env the digest that its tag has today, and from then on exactly that image is
# used. Running it again takes what is new. It needs Docker and the registries.
#
#   scripts/pin-images.sh          pins all of them
#   scripts/pin-images.sh check    lists those that are not pinned, and fails if
#                                  there are any
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# images prints NAME=image of every image in docker-compose.yml.
images() { grep -oE '[A-Z]+_IMAGE:-[^}]+' docker-compose.yml | sed 's/:-/=/' | sort -u; }

# pinned NAME prints what .env has for an image.
pinned() { { grep "^$1=" .env 2>/dev/null || true; } | tail -n 1 | cut -d= -f2-; }

check() {
  local line image unpinned=0
  while IFS= read -r line; do
    image=$(pinned "${line%%=*}")
    [[ $image == *@sha256:* ]] || {
      echo "not pinned: ${line%%=*} is ${image:-${line#*=}}"
      unpinned=1
    }
  done < <(images)
  return "$unpinned"
}

pin() {
  local line name image digest others
  while IFS= read -r line; do
    name=${line%%=*} image=${line#*=}
    docker pull --quiet "$image" >/dev/null
    digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" | head -n 1)
    [[ $digest == *@sha256:* ]] || {
      echo "pin-images: $image comes from no registry and has no digest" >&2
      return 1
    }
    others=$(grep -v "^$name=" .env 2>/dev/null || true)
    printf '%s\n' ${others:+"$others"} "$name=$image@${digest#*@}" >.env
    echo "$name=$image@${digest#*@}"
  done < <(images)
}

case ${1:-pin} in
  pin | check) "${1:-pin}" ;;
  *)
    echo "usage: scripts/pin-images.sh [check]" >&2
    exit 2
    ;;
esac
