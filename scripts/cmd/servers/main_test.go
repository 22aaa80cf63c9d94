//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// becomesSleep, set, makes this program a server that is set up and then begins.
const becomesSleep = "TEST_BECOMES_SLEEP"

func TestMain(m *testing.M) {
	if os.Getenv(becomesSleep) == "" {
		os.Exit(m.Run())
	}
	for range 20 { // whoever waits goes on in another thread
		if err := exec.Command("true").Run(); err != nil {
			panic(err)
		}
	}
	sleep := exec.Command("sleep", "3600")
	sleep.Dir, sleep.SysProcAttr = "/", new(syscall.SysProcAttr)
	panic(become(sleep, nil))
}

// A program that became a server was a zombie while it did: the stack, which looked
// just then, said that the server does not answer, and its log was empty.
func TestBecomingAServerIsNoEnd(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		server := exec.CommandContext(t.Context(), os.Args[0])
		server.Env = append(os.Environ(), becomesSleep+"=1")
		server.Stderr = t.Output()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		stat := filepath.Join("/proc", fmt.Sprint(server.Process.Pid), "stat")
		for name := ""; name != "sleep"; {
			text, err := os.ReadFile(stat)
			if err != nil {
				t.Fatal(err)
			}
			var state string
			_, name, _ = strings.Cut(string(text), "(")
			name, state, _ = strings.Cut(name, ") ")
			if state[0] == 'Z' {
				t.Fatalf("start %d: a zombie before it is the server", i)
			}
		}
		_ = server.Process.Kill()
		_ = server.Wait() // killed, so this is an error
	}
}
