package main

import (
	"fmt"
	"io"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
)

// Progress says how far the run is, a line for each look at it.
type progress struct {
	out     io.Writer
	seconds float64 // that the run is planned to take
}

// say tells what is done next.
func (p progress) say(what string) { fmt.Fprintln(p.out, "loadtest:", what) }

// tell shows the latest look at the run.
func (p progress) tell(at result.Point) {
	fmt.Fprintf(p.out, "%3.0f %%  %5.0f/s accepted  %5.0f/s shown  p99 %.1f ms  %d on the way\n",
		100*min(at.Second/p.seconds, 1), at.Accepted, at.Received, at.Screen.P99, at.Outstanding)
}
