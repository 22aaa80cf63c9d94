package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
)

// barWidth is the length of the bar in characters.
const barWidth = 30

// A bar shows how far the run is. On a terminal it stays in its line.
type bar struct {
	out      io.Writer
	terminal bool
	seconds  float64 // that the run is planned to take

	mu sync.Mutex
}

func newBar(out io.Writer, events int, rate float64) *bar {
	b := &bar{out: out, seconds: float64(events) / rate}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

// say tells what is done next.
func (b *bar) say(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	fmt.Fprintln(b.out, "loadtest:", what)
}

// tell shows the latest look at the run.
func (b *bar) tell(p result.Point) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	done := min(p.Second/b.seconds, 1)
	full := int(done * barWidth)
	fmt.Fprintf(b.out, "[%s%s] %3.0f %%  %5.0f/s accepted  %5.0f/s shown  p99 %.1f ms  %d on the way%s",
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*done,
		p.Accepted, p.Received, p.Screen.P99, p.Outstanding, b.newline())
}

// end leaves the line to whoever writes next.
func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

func (b *bar) clear() {
	if b.terminal {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

func (b *bar) newline() string {
	if b.terminal {
		return ""
	}
	return "\n"
}
