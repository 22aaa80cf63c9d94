package eventually_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A recorder is a test that may fail.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A wait ends as soon as nothing is missing.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		eventually.True(t, "a minute is over", func() bool { return time.Since(began) >= time.Minute })
		if late := time.Since(began) - time.Minute; late > time.Second {
			t.Errorf("seen %v late", late)
		}
	})
}

// A wait that is in vain fails the test and says what was missing last.
func TestWaitInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, r := time.Now(), &recorder{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			eventually.NothingMissing(r, "three copies", func() string {
				return fmt.Sprintf("one after %d minutes", int(time.Since(began).Minutes()))
			})
		}()
		<-ended
		if want := "waited in vain: three copies: one after 3 minutes"; r.failure != want {
			t.Errorf("failed with %q, want %q", r.failure, want)
		}
		if waited := time.Since(began); waited != eventually.Patience {
			t.Errorf("waited %v, want %v", waited, eventually.Patience)
		}
	})
}
