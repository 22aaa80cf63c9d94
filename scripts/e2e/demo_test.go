package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lastLine is what other programs read of the demo.
var lastLine = regexp.MustCompile(`^expected=([1-9]\d*) once=(\d+) lost=0 doubled=0 p50_ms=\d+\.\d p99_ms=\d+\.\d mails=0 digests=0$`)

// The demo passes, and passes again on the same stack, as the local one is: people report
// without an account there.
func TestDemo(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.switchGuestsOn()
	c.start()
	c.startWorker()
	c.startPhotoWorker()
	for range 2 {
		out, err := exec.CommandContext(t.Context(), filepath.Join(binaries, "demo"), "-gateway", c.gateway.URL).CombinedOutput()
		if err != nil {
			t.Fatalf("demo: %v\n%s", err, out)
		}
		if !strings.Contains(string(out), "The guest, whom nobody knows, reads: ") {
			t.Errorf("no guest was answered:\n%s", out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		last := lines[len(lines)-1]
		if m := lastLine.FindStringSubmatch(last); m == nil || m[1] != m[2] {
			t.Errorf("the last line reads %q", last)
		}
		t.Log(last)
	}
}
