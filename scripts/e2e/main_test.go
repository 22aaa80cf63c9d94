package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// binaries is the folder with what TestMain built.
var binaries string

// services are the programs of a stack.
var services = []string{
	"./report-service/cmd/report-service", "./report-service/cmd/photo-worker",
	"./notification-service/cmd/notification-service", "./notification-service/cmd/delivery-worker",
}

// buildFlags build programs as scripts/stack does. The race detector watches the
// packages' own tests; in whole processes it would take half of the processors.
var buildFlags = []string{"-ldflags=-s -w", "-gcflags=all=-dwarf=false"}

// buildCommand prepares a build of packages, at the repository's top, into dir.
func buildCommand(dir string, args ...string) *exec.Cmd {
	build := exec.Command("go", slices.Concat([]string{"build", "-o", dir + string(filepath.Separator)}, buildFlags, args)...)
	build.Dir = root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build
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
	binaries = dir
	build := buildCommand(dir, append(slices.Clone(services), "./scripts/cmd/demo")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: build: %v\n%s", err, out)
		return 1
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
