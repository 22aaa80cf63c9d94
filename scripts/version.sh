#!/usr/bin/env bash
# Prints the version of the checkout and its revision, for the linker:
#
#   go build -ldflags="$(scripts/version.sh flags)"   both as -X flags
#   read -r version revision < <(scripts/version.sh)  both on a line
#
# The version is that of the tag, such as v1.2.3, and of later commits with their
# distance, as v1.2.3-4-g0123456. In a clone without tags the commits that made
# releases, "release: 1.2.3", count as tagged. Without a history it prints nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
revision=$(git rev-parse HEAD 2>/dev/null) || exit 0
version=$(git describe --tags --match 'v[0-9]*' 2>/dev/null) || {
  read -r commit _ version < <(git log -1 --format='%H %s' --grep='^release: [0-9]') || true
  if [[ -z ${version-} ]]; then
    version=${revision:0:7}
  elif [[ $commit == "$revision" ]]; then
    version=v$version
  else
    version=v$version-$(git rev-list --count "$commit..HEAD")-g${revision:0:7}
  fi
}
git diff --quiet HEAD 2>/dev/null || version+=-dirty
if [[ ${1-} == flags ]]; then
  build=github.com/cityconnect/cityconnect/platform/build
  echo "-X $build.version=$version -X $build.revision=$revision"
else
  echo "$version $revision"
fi
