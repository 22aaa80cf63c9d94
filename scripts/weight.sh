#!/usr/bin/env bash
# Prints how much there is to read and to keep: lines, words, settings, operations.
# Fails when one is more than scripts/weight.txt allows. A commit that adds more than it
# removes raises the number there, and its body says what the lines bring.
# shellcheck disable=SC2317 # the counts are called by name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Hand-written code that is shipped.
go() { git ls-files '*.go' ':!*_test.go' ':!*.gen.go' ':!docs' ':!scripts' ':!deploy' | xargs cat | wc -l; }
page() { git ls-files notification-service/internal/web/app/src | grep '\.tsx\?$' | grep -v '\.test\.' | xargs cat | wc -l; }
manual() { cat docs/*.md docs/id/*.md README*.md CONTRIBUTING.md | wc -w; }
settings() { git grep -hoE 'env:"[A-Z][A-Z0-9_]+' -- '*.go' ':!*_test.go' | sort -u | wc -l; }
operations() { sed '/^webhooks:/,/^components:/d' docs/openapi/*.yaml | grep -cE '^    (get|post|put|patch|delete):'; }
# Made by a program from what is in the repository, and committed; without the page.
generated() {
  git ls-files '*.gen.go' deploy/helm/testdata deploy/helm/cityconnect/values.schema.json deploy/helm/cityconnect/files \
    deploy/third-party-notices.txt platform/schedule/zones.txt notification-service/internal/postgres/testdata/apply.sql | xargs cat | wc -l
}

code=0
while read -r name most; do
  is=$("$name")
  printf '%-10s %6d of %6d\n' "$name" "$is" "$most"
  ((is <= most)) || {
    echo "$name: $((is - most)) more than scripts/weight.txt allows"
    code=1
  }
done <scripts/weight.txt
exit "$code"
