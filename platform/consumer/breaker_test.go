package consumer

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

func testBreaker() *databaseBreaker {
	return newDatabaseBreaker(prometheus.NewGauge(prometheus.GaugeOpts{}), zerolog.Nop())
}

func TestBreakerLetsOneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := testBreaker()
		b.log = zerolog.New(&log)
		if probe, err := b.enter(t.Context()); probe || err != nil {
			t.Fatalf("a closed breaker: probe %t, error %v", probe, err)
		}
		b.record(false, true)
		b.record(false, true) // a second worker found the same
		entered := make(chan bool, 3)
		for range 3 {
			go func() {
				probe, _ := b.enter(t.Context())
				entered <- probe
			}()
		}
		if probe := <-entered; !probe {
			t.Fatal("the first to pass an open breaker is not a probe")
		}
		synctest.Wait()
		if len(entered) != 0 {
			t.Fatal("more than one passed while another probes")
		}
		b.record(true, true)
		if probe := <-entered; !probe {
			t.Fatal("there is no probe after one that failed")
		}
		b.record(false, false) // begun before the outage
		if b.isClosed() {
			t.Fatal("only a probe closes the breaker")
		}
		b.record(true, false)
		if probe := <-entered; probe {
			t.Fatal("a probe through a closed breaker")
		}
		if opened, closed := strings.Count(log.String(), "circuit opened"), strings.Count(log.String(), "circuit closed"); opened != 1 || closed != 1 {
			t.Errorf("logged opened %d times and closed %d times, want once each", opened, closed)
		}
	})
}

func TestBreakerProbesLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		b.record(false, true)
		probes, began := 0, time.Now()
		for time.Since(began) < time.Minute {
			if probe, err := b.enter(t.Context()); !probe || err != nil {
				t.Fatalf("probe %t, error %v", probe, err)
			}
			if probes == 0 && time.Since(began) > 2*firstProbe {
				t.Errorf("the first probe came after %s", time.Since(began))
			}
			probes++
			b.record(true, true)
		}
		if probes < 12 || probes > 22 {
			t.Errorf("%d probes in a minute, want about one in 5 s", probes)
		}
	})
}

func TestWorkerMayLeaveAnOpenBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		b.record(false, true)
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := b.enter(leaving); left <- err }()
		synctest.Wait()
		entered := make(chan bool)
		go func() { probe, _ := b.enter(t.Context()); entered <- probe }()
		leave()
		if err := <-left; err == nil {
			t.Error("a worker that was stopped entered")
		}
		if probe := <-entered; !probe {
			t.Error("the other one does not probe")
		}
	})
}
