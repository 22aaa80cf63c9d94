package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The last lines of a run of tests name what failed and what was flaky, and a run
// fails exactly when a test does: also one in which nothing at all was flaky.
func TestReportOfARun(t *testing.T) {
	t.Parallel()
	const passes = `{"Action":"pass","Package":"example.com/a","Test":"TestA"}` + "\n"
	const fails = `{"Action":"fail","Package":"example.com/a","Test":"TestB"}` + "\n"
	for name, c := range map[string]struct {
		tests, flaky, failed string
		want                 string
		ok                   bool
	}{
		"all pass": {passes, "", "", "test: tests=1 flaky=0 failed=0", true},
		"one is flaky": {
			passes + fails, "example.com/a.TestB: 2 runs, 1 failures\n", "",
			"flaky, passed when run again: example.com/a.TestB test: tests=1 flaky=1 failed=0", true,
		},
		"one fails for good": {
			passes + fails, "example.com/a.TestB: 2 runs, 2 failures\n", "part",
			"failed: part example.com/a.TestB test: tests=1 flaky=0 failed=1", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := checkout(t)
			logs := filepath.Join(dir, ".stack", "logs")
			if err := os.MkdirAll(logs, 0o755); err != nil { //nolint:gosec // a test's own
				t.Fatal(err)
			}
			for file, text := range map[string]string{"part.tests.json": c.tests, "part.flaky": c.flaky} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(logs, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c",
				"set -euo pipefail; source scripts/testing.sh; failed=("+c.failed+"); report test")
			cmd.Dir, cmd.Env = dir, environment()
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			var told []string
			for field := range strings.FieldsSeq(string(out)) {
				if !strings.HasPrefix(field, "seconds=") && !strings.HasPrefix(field, "cpu_seconds=") {
					told = append(told, field)
				}
			}
			if got := strings.Join(told, " "); got != c.want || (err == nil) != c.ok {
				t.Errorf("the run says %q (error %v), want %q", got, err, c.want)
			}
		})
	}
}
