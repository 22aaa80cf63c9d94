package testlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/testlog"
)

// A recorder is a test that ends when end is called.
type recorder struct {
	testing.TB
	failed  bool
	printed string
	end     func()
}

func (r *recorder) Cleanup(f func()) { r.end = f }

func (r *recorder) Failed() bool { return r.failed }

func (r *recorder) Logf(format string, args ...any) { r.printed += fmt.Sprintf(format, args...) }

// The last log lines of a test that fails can be read, and none of one that passes.
func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		r := &recorder{TB: t, failed: failed}
		log := testlog.New(r)
		for i := range 1_000 {
			log.Warn().Msgf("attempt %d", i)
		}
		log.Info().Msg("not a warning")
		r.end()
		for text, want := range map[string]bool{"attempt 999": failed, "attempt 960": failed, "attempt 900": false, "not a warning": false} {
			if got := strings.Contains(r.printed, text); got != want {
				t.Errorf("failed %v: %q was printed: %v, want %v", failed, text, got, want)
			}
		}
	}
}
