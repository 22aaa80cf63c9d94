package consumer

import (
	"sync"
	"sync/atomic"
)

// meterSpan is over how many seconds a meter takes its mean.
const meterSpan = 10

// A meter tells how many things happened per second, lately.
type meter struct {
	total atomic.Int64

	mu   sync.Mutex
	past []int64 // total at the last ticks, oldest first
}

func (m *meter) add(n int) { m.total.Add(int64(n)) }

// tick is called once a second.
func (m *meter) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = append(m.past, m.total.Load())
	if len(m.past) > meterSpan+1 {
		m.past = m.past[1:]
	}
}

// perSecond returns the mean over the last seconds.
func (m *meter) perSecond() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.past) < 2 {
		return 0
	}
	last := len(m.past) - 1
	return float64(m.past[last]-m.past[0]) / float64(last)
}
