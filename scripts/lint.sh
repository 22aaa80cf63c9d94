#!/usr/bin/env bash
# Checks that need no server: formatting, generated code, linters, shell
# scripts, known vulnerabilities, the page. All of them run, or those that are
# named: scripts/lint.sh linters shell. The exit code tells whether one complained. What
# could not be looked at is said at the end, and fails if REQUIRED_CHECKS names it.
# shellcheck disable=SC2317 # the checks are called by name, at the end
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t modules < <(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
# Those that are not in the workspace. scripts/tools has no code.
mapfile -t apart < <(git ls-files '*/go.mod' ':!scripts/tools' | sed 's|^|./|; s|/go.mod$||' |
  grep -vxFf <(printf '%s\n' "${modules[@]}"))
shipped=(migrations report-service notification-service)

formatting() {
  local files
  files=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
  [[ -z $files ]] || {
    printf 'not formatted; run make fmt:\n%s\n' "$files"
    return 1
  }
}

# linters includes vet.
linters() {
  local module code=0 tool=$PWD/scripts/tool.sh
  "$tool" golangci-lint run "${modules[@]/%//...}" || code=1
  for module in "${apart[@]}"; do
    (cd "$module" && GOWORK=off "$tool" golangci-lint run ./...) || code=1
  done
  return "$code"
}

# generated makes the generated code anew, beside the tree because tests may be
# compiling what is in it, and compares.
generated() (
  place=$(mktemp -d) || exit
  trap 'rm -rf "$place"' EXIT
  for source in $(git grep -l '^//go:generate' -- '*.go'); do
    folder=$(dirname "$source")
    cp --parents -r "$folder" "${source%%/*}/go.mod" docs/openapi scripts/tools "$place" || exit
    (cd "$place/$folder" && GOWORK=off go generate "${source##*/}") || exit
    diff -r "$folder" "$place/$folder" || {
      echo 'generated code is not current; run make generate'
      exit 1
    }
  done
)

shell() {
  if ! command -v shellcheck >/dev/null; then
    echo 'skipped: shellcheck is not installed'
    return
  fi
  local scripts
  mapfile -t scripts < <(git ls-files 'scripts/*.sh' 'deploy/*.sh' scripts/stack .ci/run ':!scripts/stack.d' ':!scripts/kubernetes.d')
  shellcheck -x "${scripts[@]}"
}

# versions makes sure that what is shipped, which is built without the workspace,
# has the dependencies that are tested in it.
versions() {
  local module code=0 list='{{with .Module}}{{.Path}} {{.Version}}{{end}}'
  for module in "${shipped[@]}"; do
    diff <(linked "$module" "$list") <(GOWORK=off linked "$module" "$list") || {
      echo "$module is tested with the versions that have <, and shipped with those that have >; run go work sync, and go mod tidy in each module"
      code=1
    }
  done
  return "$code"
}

# linked MODULE FORMAT lists what others wrote and a module's programs contain.
linked() {
  CGO_ENABLED=0 go -C "$1" list -deps -f "$2" ./cmd/... | grep -v '^github.com/cityconnect/' | sort -u
}

# notices compares the third-party notices with what the programs contain.
notices() {
  go run ./scripts/cmd/notices "${shipped[@]}" | diff deploy/third-party-notices.txt - || {
    echo 'deploy/third-party-notices.txt is not current; run make notices'
    return 1
  }
}

# workflows checks what GitHub runs, with the shell in it where shellcheck is there.
workflows() { scripts/tool.sh actionlint .github/workflows/*.yml; }

# alerts has Prometheus' own program read the rules and try them.
alerts() {
  if ! command -v promtool >/dev/null; then
    echo 'skipped: promtool is not installed'
    return
  fi
  promtool check rules deploy/prometheus/alerts.yml &&
    promtool test rules deploy/prometheus/*_test.yml
}

# vulnerabilities asks the Go vulnerability database, where it can be reached.
vulnerabilities() {
  local module out code
  scripts/tool.sh govulncheck -version >/dev/null || return 1 # compiles it, which may take minutes
  for module in "${modules[@]}"; do
    code=0
    out=$(timeout 300 scripts/tool.sh govulncheck -C "$module" ./... 2>&1) || code=$?
    if [[ $out == *"fetching vulnerabilities:"* ]]; then
      echo "skipped: the vulnerability database cannot be reached, so nobody knows"
      return
    elif ((code == 124)); then
      echo "$module: govulncheck has not ended within 300 s; run this check again, on a less busy machine"
      return 1
    elif ((code != 0)); then
      printf '%s: %s\n' "$module" "$out"
      return 1
    fi
  done
}

# variables makes sure that every variable of the services can be set in both
# stacks, and is documented. The tests of each program's package config look closer:
# whether Compose passes it to this very program, and a secret as a file.
variables() {
  local name file missing=0
  for name in $(git grep -hoE 'env:"[A-Z][A-Z0-9_]+' -- '*.go' ':!*_test.go' | cut -d'"' -f2 | sort -u); do
    for file in docker-compose.yml .env.example docs/configuration.md; do
      # The addresses differ between the stacks, which set them themselves.
      [[ $name =~ ^(HTTP_ADDR|OPERATIONS_ADDR|DATABASE_URL|AUTH_DEV_NETWORK)$ && $file == .env.example ]] && continue
      grep -qE "(^|[^A-Z0-9_])$name(_FILE)?([^A-Z0-9_]|\$)" "$file" || {
        echo "$name: not in $file"
        missing=1
      }
    done
  done
  for name in $(grep -oE '^#[A-Z][A-Z0-9_]+_FILE=' .env.example | tr -d '#=' | grep -vx COMPOSE_FILE); do
    grep -qE "(^|[^A-Z0-9_])${name}([^A-Z0-9_]|\$)" docker-compose.yml || {
      echo "$name: in .env.example, and not in docker-compose.yml"
      missing=1
    }
  done
  return "$missing"
}

# documents looks whether the files that the documents name exist: in backticks,
# from the repository's top, and as links.
documents() {
  local file path missing=0 roots
  roots=$(git ls-files | grep / | cut -d/ -f1 | sort -u | paste -sd '|')
  for file in $(git ls-files -co --exclude-standard '*.md' ':!*/node_modules/*' ':!*/dist/*'); do
    while read -r path; do
      compgen -G "${path%%[#:]*}" >/dev/null || {
        echo "$file: there is no $path"
        missing=1
      }
    done < <(
      grep -oE "\`($roots)/[A-Za-z0-9_./*-]+\`" "$file" | tr -d '\`'
      grep -oE '\]\([^):#]+[^)]*\)' "$file" | grep -v '://' | sed -E "s|^\]\(([^)#]*).*|$(dirname "$file")/\1|"
    )
  done
  return "$missing"
}

# diagrams looks at each Mermaid block of the documents: what draws them shows an
# error in the place of one with an unknown kind or a bracket that is never closed.
diagrams() {
  local files
  mapfile -t files < <(git ls-files -co --exclude-standard '*.md' ':!*/node_modules/*' ':!*/dist/*')
  awk '
    function complain(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; failed = 1 }
    # unbalanced strips what is quoted, then innermost pairs until none is left. The
    # arrows of sequences hold a bracket, and so do asymmetric nodes, which nobody uses.
    function unbalanced(line) {
      gsub(/"[^"]*"/, "", line)
      if (kind == "sequenceDiagram") gsub(/--?\)/, "", line)
      while (gsub(/\([^][(){}]*\)|\[[^][(){}]*\]|\{[^][(){}]*\}/, "", line)) continue
      return line ~ /[][(){}"]/
    }
    FNR == 1 && inside { printf "%s: a block is never closed\n", before; failed = 1; inside = 0 }
    { before = FILENAME }
    !inside && /^ *```mermaid *$/ { inside = 1; kind = ""; next }
    !inside { next }
    /^ *``` *$/ { if (kind == "") complain("a diagram must say its kind"); inside = 0; next }
    /^ *(%%.*)?$/ { next }
    kind == "" {
      kind = $1
      if (kind !~ /^(flowchart|sequenceDiagram|stateDiagram-v2|erDiagram|classDiagram|timeline)$/) complain("there is no kind of diagram " kind)
      if (kind == "flowchart" && $2 !~ /^(LR|RL|TB|TD|BT)$/) complain("a flowchart must have a direction, such as LR")
      next
    }
    unbalanced($0) { complain("brackets or quotes do not match: " $0) }
    kind == "flowchart" && !/-->|---|-\.->|==>|^ *(subgraph|end|classDef|class|style|direction)/ && !/^ *[A-Za-z]+[[({]/ { complain("neither a node nor an arrow: " $0) }
    kind == "stateDiagram-v2" && !/-->|^ *(state|note|end|direction|\})/ { complain("neither a state nor an arrow: " $0) }
    kind == "sequenceDiagram" && !/^ *(actor|participant|note|Note|loop|alt|else|opt|end|par|and|activate|deactivate)|[-]>>?.*:|-[)x].*:/ { complain("neither a participant nor a message: " $0) }
    END { if (inside) { printf "%s: a block is never closed\n", before; failed = 1 } exit failed }
  ' "${files[@]}"
}

# promises makes sure that the tests exist that CONTRIBUTING.md names, and those
# that scripts choose.
promises() {
  local name missing=0
  for name in $({ grep -oE '`Test[A-Za-z0-9]+' CONTRIBUTING.md | tr -d '\`'; sed -n "/^\(walks\|promises\)=/s/[.*]*[|)(]/\n/gp" scripts/testing.sh scripts/test-server-versions.sh | grep -oE '^Test[A-Za-z0-9]+'; } | sort -u); do
    git grep -qE "^func $name" -- '*_test.go' || {
      echo "there is no test $name"
      missing=1
    }
  done
  return "$missing"
}

# prose finds shapes of sentences that are hard to read, in documents, Go, TypeScript,
# shell and SQL, and messages that begin with "want". Each has a plainer way to be said.
prose() {
  local failed=0
  local everywhere=('*.md' 'docs/*.yaml' 'docs/openapi/*.yaml' '*.go' '*.ts' '*.tsx' '*.sh' '*.sql' ':!scripts/lint.sh' ':!*.gen.go'
    ':!*/i18n.test.ts' ':!*/draft.test.ts') # a list of such words; a resident's own
  local messages=('*.go' 'deploy/helm/*.yaml' 'deploy/helm/*.tpl' 'notification-service/internal/web/app/src/lang/*.json'
    ':!*_test.go' ':!*test/*.go' ':!*bench/*.go')
  local shapes=(
    '\b[Hh](e|im|imself|is)\b'                                                      # they, or the noun
    '\bhas the \w+ (ask|read|take|send|look|write)\b'                        # say what the subject itself does
    '\b([Aa]new|[Mm]eanwhile)\b'                                             # again, while ..., or a tense
    '\b(is|are|was|were|been|being) told\b(?! apart)'                        # gets, reads, is notified
    '(?<![Tt]here )\b(is|are|be|was|were) no (?!longer|more|matter)[a-zA-Z]'  # is not a, other than a
  )
  if git grep -nP "$(IFS='|' && echo "${shapes[*]}")" -- "${everywhere[@]}"; then
    echo 'say it in another way: they or the noun; again, while; gets, reads; is not a'
    failed=1
  fi
  if git grep -nP '^\s*(//|/?\*\*?) (Who|What|Whoever)\b' -- '*.go' '*.ts' '*.tsx'; then
    echo 'begin the comment with a noun'
    failed=1
  fi
  if git grep -nP '"(want |[^"]*[:;,] want )' -- "${messages[@]}"; then
    echo 'a message says what must hold: "must be ...", "must have ...", "must not ..."'
    failed=1
  fi
  return "$failed"
}

# weight compares how much there is with what scripts/weight.txt allows.
weight() { scripts/weight.sh; }

# page checks the types of the page's sources, lints them and their formatting.
page() { scripts/page.sh lint; }

if (($# == 0)); then
  set -- formatting generated versions notices linters shell workflows alerts variables documents diagrams prose promises weight vulnerabilities page
fi
failed=0 skipped=()
for check in "$@"; do
  if ! out=$("$check" 2>&1); then
    printf '%s: FAILED\n%s\n' "$check" "$out"
    failed=1
  elif [[ $out == *'skipped: '* ]]; then
    echo "$check: NOT CHECKED: ${out##*skipped: }"
    skipped+=("$check")
  else
    echo "$check: ok"
  fi
done
for check in ${REQUIRED_CHECKS:-}; do
  if [[ " ${skipped[*]} " == *" $check "* ]]; then
    echo "FAILED: $check must not be left out here"
    failed=1
  fi
done
exit "$failed"
