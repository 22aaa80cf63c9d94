package drive

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

// legal has the status changes that the API takes without a note.
var legal = map[string]map[string]bool{
	"pending":     {"in_progress": true},
	"in_progress": {"pending": true, "resolved": true},
}

// However late and in whatever order answers come, the town asks for nothing
// that the API would refuse, and for everything that was planned.
func TestTownAsksOnlyForWhatIsLegal(t *testing.T) {
	t.Parallel()
	cfg := Config{Users: 20, Officials: 2, ReportsPerUser: 30, VotesPerReport: 5, ChangesPerReport: 3, Hot: 20, Seed: 5}
	town, random := newTown(&cfg), rand.New(rand.NewPCG(1, 1))
	var underWay []task
	status := make(map[uuid.UUID]string)
	var count [kinds]int
	answer := func(i int) {
		done := underWay[i]
		underWay = append(underWay[:i], underWay[i+1:]...)
		id := uuid.New()
		if done.kind == filing {
			status[id] = "pending"
		} else if id = done.report.id; done.kind == moving {
			status[id] = done.status
		}
		town.done(done, id, nil)
	}
	for range cfg.Events() {
		next, ok := town.next(time.Now())
		for ; !ok; next, ok = town.next(time.Now()) {
			answer(random.IntN(len(underWay)))
		}
		count[next.kind]++
		check(t, next, status, underWay)
		underWay = append(underWay, next)
		for len(underWay) > 10 {
			answer(random.IntN(len(underWay)))
		}
	}
	if want := [kinds]int{600, 3000, 1800}; count != want {
		t.Errorf("got %v tasks, want %v", count, want)
	}
}

func check(t *testing.T, next task, status map[uuid.UUID]string, underWay []task) {
	t.Helper()
	switch next.kind {
	case voting:
		if next.actor == next.report.owner {
			t.Fatal("a vote on one's own report")
		}
		if status[next.report.id] == "resolved" {
			t.Fatal("a vote on a closed report")
		}
	case moving:
		if from := status[next.report.id]; !legal[from][next.status] {
			t.Fatalf("a report from %s to %s", from, next.status)
		}
	}
	for _, other := range underWay {
		if other.report == next.report && next.kind != filing && (other.kind == moving || next.kind == moving) {
			t.Fatalf("%v and %v of one report at the same time", other.kind, next.kind)
		}
	}
}

// A report whose last request had no answer is left alone.
func TestTownLeavesTheUnknownAlone(t *testing.T) {
	t.Parallel()
	cfg := Config{Users: 2, Officials: 1, ReportsPerUser: 1, VotesPerReport: 0, ChangesPerReport: 5}
	town := newTown(&cfg)
	moves := 0
	for next, ok := town.next(time.Now()); ok; next, ok = town.next(time.Now()) {
		if next.kind == moving {
			moves++
			town.done(next, next.report.id, errAway)
			continue
		}
		town.done(next, uuid.New(), nil)
	}
	if moves != 2 {
		t.Errorf("got %d status changes, want one of each of 2 reports", moves)
	}
}
