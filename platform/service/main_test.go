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
	if err := command(nil, run, nil, nil); err != nil || runs != 1 {
		t.Errorf("without arguments: error %v after %d runs, want none after one", err, runs)
	}
	var got []string
	commands := map[string]Command{"forget": func(_ context.Context, args []string, _ func(string) string, _ io.Reader, _ io.Writer) error {
		got = args
		return nil
	}}
	if err := command([]string{"forget", "it"}, run, nil, commands); err != nil || len(got) != 1 || got[0] != "it" {
		t.Errorf("a command got %q, error %v; want what follows its name", got, err)
	}
	for _, args := range [][]string{{"serve"}, {"healthcheck", "now"}} {
		if err := command(args, run, nil, commands); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", args)) {
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
