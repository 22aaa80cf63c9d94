package shards

import (
	"testing"
	"time"
)

// A shard is released only when none of its rows is in progress, and rows of
// an earlier epoch do not count for the present one.
func TestReleaseWaitsForRows(t *testing.T) {
	t.Parallel()
	l := NewLeases()
	old, now := Lease{5, 1}, Lease{5, 2}
	l.Renew([]Lease{old}, time.Now().Add(time.Hour))
	if !l.Begin(old) || l.Begin(now) {
		t.Error("Begin: want the present epoch only")
	}
	l.setReleasing(1)
	if l.MayPublish(old) || l.Begin(old) || l.ActiveSet() != 0 || len(l.Active()) != 0 || len(l.takeDrained()) != 0 {
		t.Error("a releasing shard takes no row, and is not released while one is in progress")
	}
	l.End(old)
	if drained := l.takeDrained(); len(drained) != 1 || drained[0] != 5 {
		t.Errorf("takeDrained = %v, want the shard", drained)
	}
	l.add([]Lease{now})
	l.End(old)
	l.setReleasing(1)
	if drained := l.takeDrained(); len(drained) != 1 {
		t.Errorf("takeDrained = %v, want the shard: a row of the old epoch is none of the present", drained)
	}
}

// A renewal that changes nothing wakes no reader.
func TestChangedIsSilentWithoutChange(t *testing.T) {
	t.Parallel()
	l := NewLeases()
	changed := func() bool {
		select {
		case <-l.Changed():
			return true
		default:
			return false
		}
	}
	later := time.Now().Add(time.Hour)
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"first", func() { l.Renew([]Lease{{1, 1}, {2, 1}}, later) }, true},
		{"the same again", func() { l.Renew([]Lease{{1, 1}, {2, 1}}, later) }, false},
		{"nothing to release", func() { l.setReleasing(0) }, false},
		{"one to release", func() { l.setReleasing(1) }, true},
		{"still", func() { l.setReleasing(1) }, false},
		{"another epoch", func() { l.Renew([]Lease{{1, 1}, {2, 2}}, later) }, true},
		{"one less", func() { l.Renew([]Lease{{1, 1}}, time.Now().Add(-time.Second)) }, true},
		{"after the lease was over", func() { l.Renew([]Lease{{1, 1}}, later) }, true},
	} {
		step.do()
		if got := changed(); got != step.want {
			t.Errorf("%s: changed = %v, want %v", step.what, got, step.want)
		}
	}
}

// Leases that were not renewed in time allow nothing.
func TestExpiredLeases(t *testing.T) {
	t.Parallel()
	l := NewLeases()
	if l.Valid() {
		t.Error("valid before the first renewal")
	}
	l.Renew([]Lease{{3, 1}}, time.Now().Add(time.Hour))
	if !l.Valid() || !l.Owns(3) || l.Owns(4) || l.Owned() != 1 || l.ActiveSet() != Set(0).Add(3) {
		t.Errorf("after a renewal: valid %v, owns 3 %v, owns 4 %v, active %b", l.Valid(), l.Owns(3), l.Owns(4), l.ActiveSet())
	}
	l.Renew([]Lease{{3, 1}}, time.Now().Add(-time.Nanosecond))
	if l.Valid() || l.Owns(3) {
		t.Error("still valid after the time of the renewal")
	}
}
