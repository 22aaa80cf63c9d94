package consumer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLadder(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, tt := range []struct {
		name string
		t    Tuning
		want []time.Duration
	}{
		{"default", Tuning{MaxAttempts: 3, Backoff: Exponential, Delays: []time.Duration{s, 5 * s, 30 * s}}, []time.Duration{s, 5 * s}},
		{"more attempts than delays", Tuning{MaxAttempts: 5, Backoff: Exponential, Delays: []time.Duration{2 * s, 30 * s}}, []time.Duration{2 * s, 30 * s, 30 * s, 30 * s}},
		{"linear", Tuning{MaxAttempts: 4, Backoff: Linear, Delays: []time.Duration{12 * s}}, []time.Duration{12 * s, 24 * s, 30 * s}},
		{"one attempt", Tuning{MaxAttempts: 1, Delays: []time.Duration{s}}, []time.Duration{}},
	} {
		if got := tt.t.Ladder(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: ladder %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTuningNamesEveryFault(t *testing.T) {
	t.Parallel()
	var named []string
	for _, fault := range (Tuning{BatchWait: -1, Backoff: "cubic", Delays: []time.Duration{time.Minute}}).Validate() {
		named = append(named, fault.Variable)
	}
	for _, name := range []string{
		"PREFETCH", "CONSUMER_WORKERS", "CONSUMER_BATCH_SIZE", "CONSUMER_BATCH_WAIT", "CONSUMER_TIMEOUT",
		"CONSUMER_STALL_AFTER", "RETRY_MAX_ATTEMPTS", "RETRY_BACKOFF", "RETRY_DELAYS",
	} {
		if !slices.Contains(named, name) {
			t.Errorf("no fault names %s", name)
		}
	}
}

func TestGateLetsOneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes []bool
		g := newGate(func(open bool) { changes = append(changes, open) })
		g.shut()
		g.shut() // a second worker found the same
		entered := make(chan bool, 3)
		for range 3 {
			go func() {
				probe, _ := g.enter(t.Context())
				entered <- probe
			}()
		}
		if probe := <-entered; !probe {
			t.Fatal("the first to enter a shut gate is no prober")
		}
		synctest.Wait()
		if len(entered) != 0 {
			t.Fatal("more than one entered while the gate is shut")
		}
		g.probed(false)
		if probe := <-entered; !probe {
			t.Fatal("nobody probes after a probe that failed")
		}
		g.probed(true)
		if probe := <-entered; probe {
			t.Fatal("a probe through an open gate")
		}
		if !slices.Equal(changes, []bool{false, true}) {
			t.Errorf("changes %v, want shut and open once each", changes)
		}
	})
}

func TestGateProberMayLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(func(bool) {})
		g.shut()
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := g.enter(leaving); left <- err }()
		synctest.Wait() // it is the prober now
		entered := make(chan bool)
		go func() { probe, _ := g.enter(t.Context()); entered <- probe }()
		leave()
		if err := <-left; err == nil {
			t.Error("a worker that was told to stop entered")
		}
		if probe := <-entered; !probe {
			t.Error("nobody took over the probing")
		}
	})
}

func TestPriorityYieldsToProgressOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPriority(2)
		yielded := func() time.Duration {
			began := time.Now()
			p.yield(t.Context(), 1)
			return time.Since(began)
		}
		if took := yielded(); took != 0 {
			t.Errorf("yielded for %s to nobody", took)
		}
		p.came(0)
		p.came(0)
		time.AfterFunc(20*time.Millisecond, func() { p.done(0, 2, false) })
		if took := yielded(); took != 20*time.Millisecond {
			t.Errorf("yielded for %s, want the 20ms that it took", took)
		}
		p.came(0)
		time.AfterFunc(20*time.Millisecond, func() { p.done(0, 1, true) })
		if took := yielded(); took != 20*time.Millisecond+refill {
			t.Errorf("yielded for %s, want the 20ms that it took and %s for more to come", took, refill)
		}
		p.came(0)
		if took := yielded(); took != maxYield {
			t.Errorf("yielded for %s, want %s at the most", took, maxYield)
		}
		if took := yielded(); took != 0 {
			t.Errorf("yielded for %s to what does not get on", took)
		}
		p.yield(t.Context(), 0) // the most urgent waits for nobody
	})
}

func TestMeter(t *testing.T) {
	t.Parallel()
	var m meter
	for range 20 {
		m.tick()
		m.add(50)
	}
	if got := m.perSecond(); got != 50 {
		t.Errorf("%v a second, want 50", got)
	}
}
