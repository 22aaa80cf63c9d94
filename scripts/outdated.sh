#!/usr/bin/env bash
# Lists the Go modules, npm packages and pinned tools that have a newer version, by the
# registries that they come from. It always ends with 0.
# docs/dependencies.md says why some stay behind.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# report TITLE COMMAND... shows what a command lists, or that there is nothing.
report() {
  local title=$1 out
  shift
  if out=$("$@" 2>&1); then
    [[ -n $out ]] && echo "$title: behind" || echo "$title: current"
  else
    printf '%s: could not be asked\n' "$title"
  fi
  [[ -z $out ]] || echo "  ${out//$'\n'/$'\n'  }"
}

# Those that a go.mod names for itself, and those of its tools; what these bring along
# follows from them.
go_modules() (
  cd "$1" && place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
  cp go.mod "$place" && cp go.sum "$place" 2>/dev/null # go writes into these
  export GOWORK=off GOFLAGS="-mod=mod -modfile=$place/go.mod"
  direct=$(go list -m -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}}{{end}}' all && go list -f '{{.Module.Path}}' tool 2>/dev/null)
  mapfile -t named < <(sort -u <<<"$direct" | grep .)
  ((${#named[@]})) || exit 1
  go list -m -u -e -f '{{if .Update}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{else if .Error}}{{.Path}} could not be asked{{end}}' "${named[@]}"
)

# npm ends with 1 where something is behind.
npm_packages() {
  local out
  out=$(cd "$1" && npm outdated --parseable 2>&1) || [[ $? == 1 && $out != *'npm error'* ]] || {
    printf '%s\n' "$out"
    return 1
  }
  # The fields are path, wanted, current and latest, each as name@version.
  awk -F: 'NF >= 4 { print $2 " -> " $4 }' <<<"$out"
}

while read -r module; do
  report "Go, $module" go_modules "$module"
done < <(git ls-files '*go.mod' | xargs -n1 dirname)

if command -v npm >/dev/null; then
  while read -r folder; do
    report "npm, $folder" npm_packages "$folder"
  done < <(git ls-files '*package.json' ':!*/testdata/*' | xargs -n1 dirname)
else
  echo 'npm: could not be asked, because it is not installed'
fi
