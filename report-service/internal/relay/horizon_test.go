package relay

import (
	"testing"
	"time"
)

// The floor follows what is published, stays below what is pending or may
// still commit, and starts again at the bottom when a watched transaction ends.
func TestHorizon(t *testing.T) {
	t.Parallel()
	one := claim{shard: 3, epoch: 1}
	now := time.Unix(1000, 0)
	h := newHorizon(now)
	// see shows h a page with the given running transactions and rows.
	see := func(running string, underway []*row, seqs ...int64) bool {
		t.Helper()
		p := page{question: question{claims: []claim{one}, underway: underway}, snapshot: "1:999:" + running}
		for _, seq := range seqs {
			p.rows = append(p.rows, &row{claim: one, seq: seq})
		}
		usable, err := h.accept(p, now)
		if err != nil {
			t.Fatal(err)
		}
		return usable
	}
	want := func(what string, floor int64) {
		t.Helper()
		if got := h.at(one); got != floor {
			t.Errorf("%s: floor %d, want %d", what, got, floor)
		}
	}

	see("", nil, 10, 20)
	h.wrote(50, 20, now)
	see("40", nil)
	want("an older transaction runs", 0)
	see("60", []*row{{claim: one, seq: 15}})
	want("a row is under way", 14)
	see("60", nil, 30)
	h.wrote(70, 30, now)
	see("80", nil, 25)
	want("a row came late", 24)

	h.wrote(90, 30, now)
	now = now.Add(2 * patience)
	see("85", nil)
	want("a transaction stays open", 30)
	if !see("85,95", nil) {
		t.Error("page refused while the watched transaction runs")
	}
	if see("95", nil) {
		t.Error("page used although the watched transaction ended")
	}
	want("after it ended", 0)

	h.wrote(100, 30, now)
	see("", nil)
	one.epoch++
	want("the shard came back in another epoch", 0)
}

// What cannot be told about kinds that are held back moves no floor.
func TestHorizonWhileHeldBack(t *testing.T) {
	t.Parallel()
	one := claim{shard: 0, epoch: 1}
	now := time.Unix(1000, 0)
	h := newHorizon(now)
	h.highest = 20
	h.wrote(50, 20, now)
	p := page{question: question{claims: []claim{one}, shut: []string{"report.created"}}, snapshot: "60:60:"}
	if usable, err := h.accept(p, now); !usable || err != nil || h.at(one) != 0 {
		t.Errorf("accept = %v, %v, floor %d; want used, and the floor where it was", usable, err, h.at(one))
	}
	p.shut, p.delayed = nil, []int16{0}
	if usable, err := h.accept(p, now); !usable || err != nil || h.at(one) != 0 {
		t.Errorf("with delayed rows: accept = %v, %v, floor %d; want used, and the floor where it was", usable, err, h.at(one))
	}
}
