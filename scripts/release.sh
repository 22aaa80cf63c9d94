#!/usr/bin/env bash
# Builds what is released into bin/release, from the last commit and nothing
# else: the programs for two architectures, each with its bill of materials
# (CycloneDX), the licences, and checksums of all. Built twice, in two folders: the
# same bytes must come out, so that anybody can build them again and compare.
#
# It fails if the programs have known vulnerabilities, and if that cannot be
# looked up, unless REQUIRED_CHECKS is set and empty.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -r version _ < <(scripts/version.sh)
version=${version%-dirty} # what is not committed is left out
commit_time=$(git show -s --format=%ct HEAD)
release=$PWD/bin/release
# What an installation without a checkout needs of deploy, beside the programs.
installed=(secrets.sh postgres/databases.sh rabbitmq/users.sh nginx/nginx.conf nginx/templates systemd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

REQUIRED_CHECKS=${REQUIRED_CHECKS-vulnerabilities} scripts/lint.sh versions notices vulnerabilities
if ! scripts/pin-images.sh check; then
  echo 'release: images are built on whatever these tags are by then; make pin-images pins them'
fi
git diff --quiet HEAD || echo 'release: changes that are not committed are left out'

# What only a stack for looking at the programs has, and a city's does not: the servers'
# starter, the mailbox and the demo.
stack_programs=(./cmd/servers ./cmd/mailbox ./cmd/demo)

# build SOURCES OUT ARCHITECTURE compiles as deploy/Dockerfile does.
build() {
  local module flags
  flags=$(scripts/version.sh flags)
  for module in migrations report-service notification-service; do
    GOWORK=off CGO_ENABLED=0 GOOS=linux GOARCH=$3 GOFLAGS=-buildvcs=false \
      go -C "$1/$module" build -trimpath -ldflags="-s -w ${flags//-dirty/}" -o "$2/" ./cmd/...
  done
  GOWORK=off CGO_ENABLED=0 GOOS=linux GOARCH=$3 GOFLAGS=-buildvcs=false \
    go -C "$1/scripts" build -trimpath -ldflags="-s -w ${flags//-dirty/}" -o "$2/demo/" "${stack_programs[@]}"
}

# pack FOLDER FILE makes an archive in which nothing depends on when and by whom.
pack() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$commit_time" -C "$(dirname "$1")" -c "$(basename "$1")" |
    gzip -n >"$2"
}

go build -o "$work/sbom" ./scripts/cmd/sbom
rm -rf "$release"
mkdir -p "$release" "$work/first" "$work/second"
for sources in first second; do
  git archive HEAD | tar -x -C "$work/$sources"
done
for architecture in amd64 arm64; do
  name=cityconnect-$version-linux-$architecture
  build "$work/first" "$work/$name" "$architecture"
  build "$work/second" "$work/again-$architecture" "$architecture"
  diff -r "$work/$name" "$work/again-$architecture" || {
    echo 'release: two builds differ' >&2
    exit 1
  }
  for program in "$work/$name"/* "$work/$name"/demo/*; do
    [[ -f $program ]] || continue
    "$work/sbom" -version "$version" "$program" >"$release/$(basename "$program")-$version-linux-$architecture.cdx.json"
  done
  (cd "$work/first" && go run ./scripts/cmd/notices scripts) >"$work/$name/demo/third-party-notices.txt"
  cp LICENSE deploy/third-party-notices.txt "$work/$name/"
  cp "$work/first/notification-service/internal/web/dist/third-party-notices.txt" "$work/$name/page-notices.txt"
  (cd "$work/first/deploy" && cp -r --parents "${installed[@]}" "$work/$name/")
  pack "$work/$name" "$release/$name.tar.gz"
done
cp deploy/third-party-notices.txt "$release/"
# npm names what has a version; the page has that of the commit alone.
cp -r "$work/first/notification-service/internal/web/app" "$work/page"
if ! (cd "$work/page" && npm pkg set version=0.0.0 &&
  npm sbom --package-lock-only --omit dev --sbom-format cyclonedx) >"$work/page.cdx.json" 2>"$work/sbom.log" ||
  # npm writes when it ran and a random number, by which two releases would differ.
  ! node -e '
    const { serialNumber, ...bom } = JSON.parse(require("fs").readFileSync(process.argv[1]));
    bom.metadata.timestamp = new Date(process.argv[2] * 1000).toISOString();
    console.log(JSON.stringify(bom, null, 2));
  ' "$work/page.cdx.json" "$commit_time" >"$release/page-$version.cdx.json" 2>>"$work/sbom.log"; then
  rm -f "$release/page-$version.cdx.json"
  cat "$work/sbom.log" >&2
  echo 'release: the page has no bill of materials; npm 10 makes it'
fi
(cd "$release" && sha256sum -- * >SHA256SUMS)
echo "release: $release"
