package devserver

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// No other process gets a port while the one that found it runs, even if nobody
// listens at it yet.
func TestPortIsReserved(t *testing.T) {
	const variable = "PORT_OF_ANOTHER_PROCESS"
	if port, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		if mine, err := reserve(port); mine || err != nil {
			t.Errorf("port %d: %t, %v; want it to be another's", port, mine, err)
		}
		return
	}
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPortIsReserved$")
	other.Env = append(os.Environ(), variable+"="+strconv.Itoa(ports[0]))
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
