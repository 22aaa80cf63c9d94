#!/usr/bin/env bash
# Packs the Helm chart into bin/chart, as the version that a tag names and with the
# images of that tag, and pushes it to an OCI registry:
#
#   scripts/publish-chart.sh v1.2.3 oci://registry.example.org/charts
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($# != 2)) || [[ ! $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ || $2 != oci://* ]]; then
  echo 'publish-chart: must have a tag such as v1.2.3, and a registry such as oci://registry.example.org/charts' >&2
  exit 1
fi
rm -rf bin/chart
mkdir -p bin/chart
helm package deploy/helm/cityconnect --version "${1#v}" --app-version "$1" --destination bin/chart
helm push "bin/chart/cityconnect-${1#v}.tgz" "$2"
