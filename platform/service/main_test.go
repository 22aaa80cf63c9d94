package service

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	runs := 0
	run := func(context.Context, func(string) string, io.Writer) error { runs++; return nil }
	if err := command(nil, "", run); err != nil || runs != 1 {
		t.Errorf("without arguments: error %v after %d runs, want none after one", err, runs)
	}
	for _, args := range [][]string{{"serve"}, {"healthcheck", "now"}} {
		if err := command(args, "", run); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", args)) {
			t.Errorf("command(%q): error %v, want a refusal", args, err)
		}
	}
	if runs != 1 {
		t.Errorf("what was refused ran %d times", runs-1)
	}
}
