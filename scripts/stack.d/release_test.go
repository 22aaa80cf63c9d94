package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of a release are used where its archive is at hand, is whole, and was
// made of the very tree that is checked out; otherwise programs are compiled.
func TestReleaseIsUsed(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("uname", "-sm").Output(); err != nil || !strings.HasPrefix(string(out), "Linux ") {
		t.Skipf("releases are for Linux, and this is %q (error %v)", out, err)
	}
	const release = `set -euo pipefail
architecture=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
name=cityconnect-v1.2.3-linux-$architecture
mkdir -p "$name/demo" "$FOLDER"
for program in migrate report-service photo-worker notification-service delivery-worker demo/servers demo/mailbox demo/demo; do
  printf '#!/bin/sh\necho released %s\n' "$program" >"$name/$program"
  chmod +x "$name/$program"
done
tar -czf "$FOLDER/$name.tar.gz" "$name"
rm -r "$name"
(cd "$FOLDER" && sha256sum -- *.tar.gz >SHA256SUMS)
`
	const use = `set -euo pipefail
shopt -s nullglob
root=$PWD state=$PWD/.stack
source scripts/stack.d/common.sh
source scripts/stack.d/check.sh
source scripts/stack.d/release.sh
find_release
report_faults
[[ -n $archive ]] || { echo compiled; exit; }
unpack_release
unpack_release
.stack/bin/report-service
.stack/bin/servers
`
	for _, tt := range []struct {
		name   string
		folder string
		change string
		want   string
	}{
		{"made here", "bin/release", "", "released report-service released demo/servers"},
		{"saved beside the clone", "..", "", "released report-service released demo/servers"},
		{"without its checksums", "..", "rm ../SHA256SUMS", "must be what SHA256SUMS of the release beside it says"},
		{"with another's checksum", "bin/release", "sed -i 's/^...../00000/' bin/release/SHA256SUMS", "must be what SHA256SUMS of the release beside it says"},
		{"of a tree that was changed", "bin/release", "echo >>go.work", "compiled"},
		{"of another commit", "bin/release", "git commit -q --allow-empty -m more", "compiled"},
		{"none", "elsewhere", "", "compiled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := checkout(t)
			run := func(script string) string {
				cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
				cmd.Dir = dir
				cmd.Env = append(environment(), "FOLDER="+tt.folder, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null",
					"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
				out, _ := cmd.CombinedOutput()
				return strings.Join(strings.Fields(string(out)), " ")
			}
			run("git init -q && git add . && git commit -q -m first && git tag v1.2.3")
			run(release)
			run(tt.change)
			if got := run(use); !strings.Contains(got, tt.want) {
				t.Errorf("says %q, want %q", got, tt.want)
			}
		})
	}
}

// Programs are compiled with the client of S3 servers only where photos are in a bucket.
func TestBucketsAreCompiledWhereOneIsSet(t *testing.T) {
	t.Parallel()
	compiler := t.TempDir()
	if err := os.WriteFile(filepath.Join(compiler, "go"), []byte("#!/bin/sh\necho \"$2\" >compiled\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	const build = `set -euo pipefail
root=$PWD state=$PWD/.stack
source scripts/stack.d/common.sh
source scripts/stack.d/release.sh
build ./some
cat compiled
`
	for store, want := range map[string]string{
		"":                                      "-tags=nobucket",
		"/var/lib/photos":                       "-tags=nobucket",
		"s3://key:secret@127.0.0.1:9000/photos": "-tags=",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", build)
		cmd.Dir = checkout(t)
		cmd.Env = append(environment(), "PHOTO_STORE="+store, "PATH="+compiler+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("with PHOTO_STORE=%q: go build %q (%v), want %q", store, out, err, want)
		}
	}
}
