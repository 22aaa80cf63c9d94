package city_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

var (
	report  = uuid.MustParse("018f6f3e-7b1a-7c11-8a55-0a4f6f0c9b01")
	planned = time.Unix(1767225600, 0)
)

// A step notes something in the city.
type step func(*city.Ledger)

func accept(version int64, owner int, screens uint64) step {
	return func(l *city.Ledger) {
		l.Accept(city.Event{Report: report, Version: version, Owner: owner, Screens: screens, Planned: planned})
	}
}

func sight(version int64, owner, screen int) city.Sight {
	return city.Sight{
		Report: report, Version: version, Owner: owner, Screen: screen,
		Written: planned.Add(2 * time.Millisecond), Seen: planned.Add(3 * time.Millisecond),
	}
}

func see(version int64, owner, screen int) step {
	return func(l *city.Ledger) { l.See(sight(version, owner, screen)) }
}

func find(version int64, owner int) step {
	return func(l *city.Ledger) {
		s := sight(version, owner, 0)
		s.Seen = time.Time{}
		l.Find(s)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		steps []step
		want  city.Tally
		times int // deliveries that were timed
	}{
		{"shown after the answer", []step{accept(1, 7, 1), see(1, 7, 0)}, city.Tally{Accepted: 1, Expected: 1, Once: 1}, 1},
		{"shown before the answer", []step{see(1, 7, 0), accept(1, 7, 1)}, city.Tally{Accepted: 1, Expected: 1, Once: 1}, 1},
		{"later version first", []step{see(3, 7, 0), accept(1, 7, 1), accept(3, 7, 1)}, city.Tally{Accepted: 2, Expected: 2, Once: 1, Lost: 1}, 1},
		{"lost", []step{accept(1, 7, 1)}, city.Tally{Accepted: 1, Expected: 1, Lost: 1}, 0},
		{"doubled", []step{accept(1, 7, 1), see(1, 7, 0), see(1, 7, 0)}, city.Tally{Accepted: 1, Expected: 1, Doubled: 1}, 1},
		{"doubled before the answer", []step{see(1, 7, 0), see(1, 7, 0), accept(1, 7, 1)}, city.Tally{Accepted: 1, Expected: 1, Doubled: 1}, 1},
		{"once on each of two screens", []step{accept(1, city.Officials, 3), see(1, city.Officials, 0), see(1, city.Officials, 1)}, city.Tally{Accepted: 1, Expected: 2, Once: 2}, 2},
		{"one of two screens", []step{accept(1, city.Officials, 3), see(1, city.Officials, 1)}, city.Tally{Accepted: 1, Expected: 2, Once: 1, Lost: 1}, 1},
		{"on the wrong screen", []step{accept(1, 7, 1), see(1, 8, 0)}, city.Tally{Accepted: 1, Expected: 1, Lost: 1, Astray: 1}, 0},
		{"on the wrong screen before the answer", []step{see(1, 8, 0), accept(1, 7, 1)}, city.Tally{Accepted: 1, Expected: 1, Lost: 1, Astray: 1}, 0},
		{"no answer", []step{see(1, 7, 0)}, city.Tally{Unanswered: 1}, 0},
		{"changed nothing", []step{accept(1, 7, 1), accept(1, 7, 1), see(1, 7, 0)}, city.Tally{Accepted: 1, Expected: 1, Once: 1}, 1},
		{"found in the list", []step{accept(1, 7, 1), find(1, 7)}, city.Tally{Accepted: 1, Expected: 1, Once: 1}, 0},
		{"shown and in the list", []step{accept(1, 7, 1), see(1, 7, 0), find(1, 7)}, city.Tally{Accepted: 1, Expected: 1, Once: 1}, 1},
		{"no version of ours", []step{see(0, 7, 0)}, city.Tally{Unanswered: 1}, 0},
	} {
		times := 0
		l := city.NewLedger(func(d city.Delivery) {
			times++
			if d.ToConsumer != 2*time.Millisecond || d.ToScreen != 3*time.Millisecond {
				t.Errorf("%s: got %+v, want 2 ms and 3 ms", tt.name, d)
			}
		})
		for _, do := range tt.steps {
			do(l)
		}
		if got := l.Tally(); got != tt.want || times != tt.times {
			t.Errorf("%s: got %+v with %d times, want %+v with %d", tt.name, got, times, tt.want, tt.times)
		}
		if got := l.Outstanding(); got != tt.want.Lost {
			t.Errorf("%s: %d outstanding, want %d", tt.name, got, tt.want.Lost)
		}
	}
}

// A wait for an event ends with it, and the ledger names one that never comes in time.
func TestLedgerAwaits(t *testing.T) {
	t.Parallel()
	l := city.NewLedger(func(city.Delivery) {})
	accept(1, 7, 3)(l)
	if oldest := l.Oldest(); !oldest.Equal(planned) {
		t.Errorf("the oldest is of %v, want %v", oldest, planned)
	}
	go see(1, 7, 1)(l)
	if !l.Await(report, 1, 1, t.Context().Done()) {
		t.Error("what came did not come")
	}
	now := make(chan struct{})
	close(now)
	if l.Await(report, 1, 0, now) || l.Await(report, 2, 0, now) {
		t.Error("what never came has come")
	}
	go see(1, 7, 0)(l)
	l.Settle(t.Context().Done())
	if l.Outstanding() != 0 || time.Since(l.Oldest()) > time.Minute {
		t.Errorf("%d outstanding, the oldest of %v", l.Outstanding(), l.Oldest())
	}
}
