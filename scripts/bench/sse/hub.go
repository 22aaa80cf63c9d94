package main

import (
	"context"
	"os/exec"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
)

// A hub is notification-service/bench/sse of some revision, or what is measured
// beside it, which runs.
type hub struct{ *testbed.Process }

func startHub(ctx context.Context, program string) (*hub, error) {
	process, err := testbed.Start(ctx, func(addr string) *exec.Cmd { return exec.Command(program, "-addr", addr) }, testbed.Listens)
	return &hub{process}, err
}

// memory returns the resident memory in KB.
func (h *hub) memory() int64 { return proc.Memory(h.Cmd.Process.Pid, "VmRSS") >> 10 }

// cpu returns the processor time that was used so far.
func (h *hub) cpu() time.Duration {
	used, _ := proc.CPU(h.Cmd.Process.Pid) // it runs
	return used
}

// collect has the hub give back what is garbage.
func (h *hub) collect() {
	if res, err := publisher.Get("http://" + h.Addr + "/gc"); err == nil {
		_ = res.Body.Close() // it is empty
	}
}
