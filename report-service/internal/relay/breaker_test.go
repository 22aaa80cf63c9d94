package relay

import (
	"testing"
	"time"
)

// Refusals in a row open a circuit before they can fail a row; keys outside of
// the contract have none; one success closes it.
func TestBreaker(t *testing.T) {
	t.Parallel()
	b, now := newBreaker(), time.Now()
	const key = "report.created"
	for n := 1; n < tripAfter; n++ {
		if open, _ := b.recordRefusal(key, "no", now); open {
			t.Errorf("open after %d refusals", n)
		}
	}
	if b.recordSuccess(key) {
		t.Error("a success is reported as closing a circuit that was not open")
	}
	for n := range tripAfter + 1 {
		if open, opened := b.recordRefusal(key, "no", now); open != (n >= tripAfter-1) || opened != (n == tripAfter-1) {
			t.Errorf("refusal %d: open %v, opened %v", n+1, open, opened)
		}
	}
	if !b.isOpen(key) || b.probeDue(now) != "" || b.probeDue(now.Add(2*minProbe)) != key {
		t.Error("want the circuit open, and a probe due after a pause")
	}
	now = now.Add(2 * minProbe)
	b.recordProbeRefusal(key, "still no", now)
	if !b.isOpen(key) || b.probeDue(now.Add(minProbe)) != "" || b.reasons()[key] != "still no" {
		t.Error("want the circuit open after the refused probe, and a longer pause")
	}
	for range Defaults().MaxAttempts * 2 {
		if open, _ := b.recordRefusal("report.unheard.of", "no", now); open {
			t.Error("a key outside of the contract has a circuit")
		}
	}
	if !b.recordSuccess(key) || b.isOpen(key) || len(b.openKeys()) != 0 {
		t.Error("a success does not close the circuit")
	}
}
