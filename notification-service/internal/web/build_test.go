package web_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// The sources make exactly what is committed in dist. Where there is no Node,
// there is nobody to change the page.
func TestBuilt(t *testing.T) {
	short.Skip(t)
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm here")
	}
	// Linters and unit tests install the same packages at the same time: page.sh has
	// a lock.
	out, err := exec.CommandContext(t.Context(), "../../../scripts/page.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("install the page's packages: %v\n%s", err, out)
	}
	if bytes.HasPrefix(out, []byte("skipped")) {
		t.Skipf("%s", out)
	}
	// The files that a test reads say when its cached result is stale.
	files(t, "app/src")
	files(t, "../../clients/stream/src")
	files(t, "../../../docs/openapi")
	made := t.TempDir()
	// Its types are checked by the linters; they change nothing in what is built.
	build := exec.CommandContext(t.Context(), npm, "run", "bundle", "--", "--outDir", made)
	build.Dir = "app"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the page: %v\n%s", err, out)
	}
	want, got := files(t, made), files(t, "dist")
	for name, body := range want {
		if !bytes.Equal(got[name], body) {
			t.Errorf("dist/%s is not what the sources make: run npm run build in internal/web/app", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("dist/%s is left over", name)
		}
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatalf("read %s: %v", dir, err)
	}
	return found
}

// Without a network the page starts from what its worker has kept; one file that there is
// not, and it keeps none.
func TestWorkerKeepsWhatThereIs(t *testing.T) {
	t.Parallel()
	dist := files(t, "dist")
	kept := regexp.MustCompile(`"/(assets/[^"]+)"`).FindAllSubmatch(dist["sw.js"], -1)
	if len(kept) < 5 {
		t.Fatalf("sw.js names %d files of the page", len(kept))
	}
	for _, name := range kept {
		if dist[string(name[1])] == nil {
			t.Errorf("sw.js names %s, which is not in dist", name[1])
		}
	}
}
