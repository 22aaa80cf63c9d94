package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// binaries is the folder with what TestMain built, with the race detector, and
// plain is that of the same without it.
var binaries, plain string

// programs returns the folder that the programs of t are in. Those behind a page
// do what they do in the other tests as well, where the race detector watches them.
// With it they would take a fifth of the processors, which the browser needs.
func programs(t *testing.T) string {
	if strings.HasPrefix(t.Name(), "TestPage") {
		return plain
	}
	return binaries
}

// TestMain builds the programs once for all tests.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries, plain = filepath.Join(dir, "race"), filepath.Join(dir, "plain")
	for module, packages := range map[string][]string{
		"report-service":       {"./cmd/report-service", "./cmd/photo-worker"},
		"notification-service": {"./cmd/notification-service", "./cmd/delivery-worker"},
		"scripts":              {"./cmd/demo"},
	} {
		for folder, race := range map[string]string{binaries: "-race=true", plain: "-race=false"} {
			build := exec.Command("go", append([]string{"build", race, "-ldflags=-w", "-o", folder + string(filepath.Separator)}, packages...)...)
			build.Dir = filepath.Join(root(), module)
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "e2e: build %s: %v\n%s", packages, err, out)
				return 1
			}
		}
	}
	defer func() {
		close(endings)
		for end := range endings {
			end()
		}
	}()
	return m.Run()
}

// root returns the folder of the repository.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
