package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	runs := 0
	run := func(context.Context, func(string) string, io.Writer) error { runs++; return nil }
	if err := command(nil, run, nil); err != nil || runs != 1 {
		t.Errorf("without arguments: error %v after %d runs, want none after one", err, runs)
	}
	for _, args := range [][]string{{"serve"}, {"healthcheck", "now"}} {
		if err := command(args, run, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", args)) {
			t.Errorf("command(%q): error %v, want a refusal", args, err)
		}
	}
	if runs != 1 {
		t.Errorf("what was refused ran %d times", runs-1)
	}
}

func TestGOGCWins(t *testing.T) {
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	set := func() int { return debug.SetGCPercent(77) }

	t.Setenv("GOGC", "77")
	TuneGC()
	if got := set(); got != 77 {
		t.Errorf("with GOGC the percentage is %d, want it left at 77", got)
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	TuneGC()
	if got := set(); got != gcPercent {
		t.Errorf("without GOGC the percentage is %d, want %d", got, gcPercent)
	}
}
