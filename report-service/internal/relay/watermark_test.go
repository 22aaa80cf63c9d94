package relay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A model is one shard, its writers and its reader: what PostgreSQL would show
// of them, without one.
type model struct {
	t   *testing.T
	rng *rand.Rand
	now time.Time

	nextXid, xmax uint64
	nextSeq       int64
	writers       []*writer
	pending       map[int64]bool // committed rows, by seq; true while in progress

	watermark *watermark
	one       shards.Lease

	used, refused, lagging int
}

// A writer has an id before it takes a seq, as report-service does: it locks
// the report first.
type writer struct {
	xid  uint64
	seqs []int64
}

// The watermark hides no row that is pending and not in progress, whatever the
// order in which transactions begin, take their seqs and commit, and whatever
// comes back.
func TestWatermarkHidesNothing(t *testing.T) {
	t.Parallel()
	var used, refused, lagging int
	for seed := range uint64(300) {
		m := &model{
			t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1000, 0), nextXid: 100, xmax: 100, nextSeq: 1,
			pending: make(map[int64]bool), one: shards.Lease{Shard: 3, Epoch: 1},
		}
		m.watermark = &watermark{resetAt: m.now}
		for range 400 {
			m.step()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		used, refused, lagging = used+m.used, refused+m.refused, lagging+m.lagging
	}
	// Without these nothing was proved.
	if used == 0 || refused == 0 || lagging > used {
		t.Errorf("%d reads used, %d refused, of which %d from the bottom", used, refused, lagging)
	}
	t.Logf("%d reads used, of which %d from the bottom, %d refused", used, lagging, refused)
}

func (m *model) step() {
	m.now = m.now.Add(time.Duration(m.rng.IntN(20)) * time.Millisecond)
	switch n := m.rng.IntN(100); {
	case n < 20 && len(m.writers) < 6:
		m.writers = append(m.writers, &writer{xid: m.nextXid})
		m.nextXid++
	case n < 45 && len(m.writers) > 0:
		w := m.writers[m.rng.IntN(len(m.writers))]
		w.seqs = append(w.seqs, m.nextSeq)
		m.nextSeq++
	case n < 65 && len(m.writers) > 0:
		m.commit(m.rng.IntN(len(m.writers)))
	case n < 70:
		m.now = m.now.Add(barrierTimeout) // a transaction stays open
	default:
		m.read()
	}
}

func (m *model) commit(i int) {
	w := m.writers[i]
	m.writers = slices.Delete(m.writers, i, i+1)
	m.xmax = max(m.xmax, w.xid+1)
	for _, seq := range w.seqs {
		m.pending[seq] = false
	}
}

// read starts a read, lets things happen during it, and accepts it.
func (m *model) read() {
	m.watermark.reads++
	watermark := m.watermark.at(m.one)
	p := readResult{readRequest: readRequest{number: m.watermark.reads, leases: []shards.Lease{m.one}, perShard: 3}, completeTo: []int64{math.MaxInt64}}
	var running []string
	for _, w := range m.writers {
		if w.xid < m.xmax {
			running = append(running, fmt.Sprint(w.xid))
		}
	}
	p.snapshot = fmt.Sprintf("1:%d:%s", m.xmax, strings.Join(running, ","))
	p.unlisted = uint32(m.nextXid - m.xmax)
	hidden := int64(0)
	for _, seq := range m.free() {
		switch {
		case seq <= watermark:
			hidden = seq
		case len(p.rows) < p.perShard:
			p.rows = append(p.rows, &row{lease: m.one, seq: seq})
		}
	}
	if len(p.rows) == p.perShard {
		p.completeTo[0] = p.rows[2].seq
	}
	m.finish()
	usable, err := m.watermark.accept(p, m.now)
	switch {
	case err != nil:
		m.t.Fatal(err)
	case !usable:
		m.refused++
		return
	case hidden != 0:
		m.t.Errorf("row %d is hidden below watermark %d", hidden, watermark)
	}
	m.used++
	if watermark == 0 {
		m.lagging++
	}
	for _, r := range p.rows {
		if m.rng.IntN(10) == 0 {
			m.watermark.lower(r) // not ours to publish for the moment, say
		} else {
			m.pending[r.seq] = true
		}
	}
}

// free are the rows that are pending and not in progress, in order.
func (m *model) free() []int64 {
	var seqs []int64
	for seq, inProgress := range m.pending {
		if !inProgress {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// finish ends some of what is in progress, now and then by putting it back.
func (m *model) finish() {
	for _, seq := range m.inProgress() {
		switch m.rng.IntN(12) {
		case 0:
			m.pending[seq] = false
			m.watermark.lower(&row{lease: m.one, seq: seq})
		case 1, 2, 3, 4:
			delete(m.pending, seq)
		}
	}
}

func (m *model) inProgress() []int64 {
	var seqs []int64
	for seq, inProgress := range m.pending {
		if inProgress {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs) // the same in each run
	return seqs
}

// The watermark follows what was seen once nothing older can appear, stays below
// what a read left out, and starts at the bottom with an epoch.
func TestWatermark(t *testing.T) {
	t.Parallel()
	one := shards.Lease{Shard: 3, Epoch: 1}
	now := time.Unix(1000, 0)
	w := &watermark{resetAt: now}
	number := int64(0)
	see := func(snapshot string, unlisted uint32, reach int64, seqs ...int64) {
		t.Helper()
		number++
		p := readResult{readRequest: readRequest{number: number, leases: []shards.Lease{one}}, snapshot: snapshot, unlisted: unlisted, completeTo: []int64{reach}}
		for _, seq := range seqs {
			p.rows = append(p.rows, &row{lease: one, seq: seq})
		}
		if usable, err := w.accept(p, now); err != nil || !usable {
			t.Fatalf("accept = %v, %v, want used", usable, err)
		}
	}
	want := func(what string, seq int64) {
		t.Helper()
		if got := w.at(one); got != seq {
			t.Errorf("%s: watermark %d, want %d", what, got, seq)
		}
	}

	see("50:50:", 0, math.MaxInt64, 10, 20)
	want("seen in this very read", 0)
	see("50:51:50", 0, math.MaxInt64, 30)
	want("a transaction runs", 0)
	see("51:51:", 1, math.MaxInt64)
	want("the one that ran has ended", 20)
	see("51:52:51", 1, math.MaxInt64)
	see("53:53:", 0, 25, 25)
	want("the read was full", 25)
	see("53:53:", 0, math.MaxInt64, 40)
	want("and went on", 30)
	w.reads = number + 1 // the next read has started
	w.lower(&row{lease: one, seq: 28})
	want("a row was released", 27)
	see("53:53:", 0, math.MaxInt64)
	want("of a read started before", 27)
	see("53:53:", 0, math.MaxInt64, 28)
	want("of a read started since", 40)
	one.Epoch++
	want("the shard came back in another epoch", 0)
}

// A read that leaves out routing keys, or rows that wait for another attempt,
// raises no watermark.
func TestWatermarkOfPartialReads(t *testing.T) {
	t.Parallel()
	one := shards.Lease{Shard: 0, Epoch: 1}
	now := time.Unix(1000, 0)
	w := &watermark{resetAt: now}
	w.highest = 20
	p := readResult{readRequest: readRequest{number: 1, leases: []shards.Lease{one}, openKeys: []string{"report.created"}}, snapshot: "60:60:", completeTo: []int64{math.MaxInt64}}
	if usable, err := w.accept(p, now); !usable || err != nil || w.at(one) != 0 {
		t.Errorf("accept = %v, %v, watermark %d; want used, and the watermark where it was", usable, err, w.at(one))
	}
	p.openKeys, p.delayed = nil, []int16{0}
	if usable, err := w.accept(p, now); !usable || err != nil || w.at(one) != 0 {
		t.Errorf("with delayed rows: accept = %v, %v, watermark %d; want used, and the watermark where it was", usable, err, w.at(one))
	}
}
