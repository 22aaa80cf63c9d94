package web_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What is committed in dist is what the sources make. Where there is no Node,
// there is nobody to change the page.
func TestBuilt(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm here")
	}
	if !installed() {
		install := exec.CommandContext(t.Context(), npm, "ci", "--no-audit", "--no-fund")
		install.Dir = "app"
		if out, err := install.CombinedOutput(); err != nil {
			t.Skipf("npm ci (is the registry away?): %v\n%s", err, out)
		}
	}
	files(t, "app/src") // what a test reads says when its cached result is stale
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

// installed reports whether node_modules has what package-lock.json names: npm
// ci leaves a copy of it there.
func installed() bool {
	want, err := os.ReadFile("app/package-lock.json")
	got, gotErr := os.ReadFile("app/node_modules/.package-lock.installed.json")
	return err == nil && gotErr == nil && bytes.Equal(want, got)
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
