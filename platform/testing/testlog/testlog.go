// Package testlog keeps what runs in a test has logged, for the case that the test
// fails.
package testlog

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// kept is how many lines there are to read after a failure. A step that is tried for
// minutes repeats its lines.
const kept = 50

// New returns a logger whose last warnings and errors are printed at the end of t,
// if t fails.
func New(t testing.TB) zerolog.Logger {
	var last lines
	t.Cleanup(func() {
		if text := last.text(); t.Failed() && text != "" {
			t.Logf("logged last:\n%s", text)
		}
	})
	return zerolog.New(&last).Level(zerolog.WarnLevel).With().Timestamp().Logger()
}

// lines are the last ones that were written.
type lines struct {
	mu    sync.Mutex
	lines [][]byte
}

// Write implements io.Writer. A logger calls it once for each line.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == kept {
		l.lines = slices.Delete(l.lines, 0, 1)
	}
	l.lines = append(l.lines, bytes.Clone(line))
	return len(line), nil
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.Join(l.lines, nil))
}
