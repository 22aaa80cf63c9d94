package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// binaries is the folder with what TestMain built.
var binaries string

// TestMain builds the programs once, with the race detector, for all tests.
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
	binaries = dir
	for module, packages := range map[string][]string{
		"report-service":       {"./cmd/report-service", "./cmd/photo-worker"},
		"notification-service": {"./cmd/notification-service", "./cmd/delivery-worker"},
		"scripts":              {"./cmd/demo"},
	} {
		build := exec.Command("go", append([]string{"build", "-race", "-ldflags=-w", "-o", dir + string(filepath.Separator)}, packages...)...)
		build.Dir = filepath.Join(root(), module)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: build %s: %v\n%s", packages, err, out)
			return 1
		}
	}
	defer func() { endChromium() }()
	return m.Run()
}

// root returns the folder of the repository.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
