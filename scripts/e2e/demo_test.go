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
	c.playDemo("The guest, whom nobody knows, reads: ")
	c.playDemo("Officials work for the whole city here")
}

// Where officials work for departments, as many notifications come, and a private report of
// one department is not there for the other.
func TestDemoOfDepartments(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.switchDepartmentsOn()
	c.start()
	c.startWorker()
	c.startPhotoWorker()
	first := c.playDemo("for Lina of demo-lights there is no such report")
	if second := c.playDemo("for Lina of demo-lights there is no such report"); first != second {
		t.Errorf("%s notifications came, and %s in a second run", first, second)
	}
}

// playDemo runs the demo, which says something, and returns how many notifications came.
func (c *stack) playDemo(says string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), filepath.Join(binaries, "demo"), "-gateway", c.gateway.URL).CombinedOutput()
	if err != nil {
		c.t.Fatalf("demo: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), says) {
		c.t.Errorf("the demo does not say %q:\n%s", says, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	m := lastLine.FindStringSubmatch(last)
	if m == nil || m[1] != m[2] {
		c.t.Fatalf("the last line reads %q", last)
	}
	c.t.Log(last)
	return m[1]
}
