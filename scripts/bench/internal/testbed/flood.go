package testbed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	// Reads is how many GET requests a second the gateway passes on of one address:
	// GATEWAY_READS.
	Reads = 300
	// Writes is the same for other requests: GATEWAY_WRITES.
	Writes = 20
	// Parallel is how many requests of one address it passes on at a time.
	Parallel = 200
)

// OpenLoop calls act every so often until ctx ends, each time when that is due, whatever
// became of the calls before. It returns once all calls have. n counts them from 0.
func OpenLoop(ctx context.Context, every time.Duration, act func(n int, due time.Time)) {
	var acting sync.WaitGroup
	defer acting.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * every)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		acting.Go(func() { act(n, due) })
	}
}

// A Flood is one client that asks as fast as the gateway lets it.
type Flood struct {
	Rate     int // requests a second
	Parallel int // requests at a time

	served, refused atomic.Int64
}

// Run repeats an attack, which is one request and returns the status of its answer, until
// ctx ends.
func (f *Flood) Run(ctx context.Context, attack func(ctx context.Context) (status int, err error)) {
	room := make(chan struct{}, f.Parallel)
	OpenLoop(ctx, time.Second/time.Duration(f.Rate), func(int, time.Time) {
		select {
		case room <- struct{}{}:
		default:
			return
		}
		defer func() { <-room }()
		switch status, err := attack(ctx); {
		case ctx.Err() != nil: // the end may have cut it off
		case err == nil && status/100 == 2:
			f.served.Add(1)
		default:
			f.refused.Add(1)
		}
	})
}

// AddTo adds what was served and refused in all the turns of a length together.
func (f *Flood) AddTo(figures *Figures, name string, turns int, turn time.Duration) {
	seconds := turn.Seconds() * float64(turns)
	figures.Add(name+"_served_per_s", 1, float64(f.served.Load())/seconds)
	figures.Add(name+"_refused_per_s", 1, float64(f.refused.Load())/seconds)
}

// Waits are what others waited for in turns without a flood, side 0, and with it, side 1.
type Waits struct{ p50, p99 [2][]float64 }

// Add adds a turn's milliseconds.
func (w *Waits) Add(side int, took []float64) {
	w.p50[side] = append(w.p50[side], stats.Median(took))
	w.p99[side] = append(w.p99[side], stats.Percentile(took, 99))
}

// AddTo adds the ratios of the turns with a flood to those without, and prints what they
// are made of.
func (w *Waits) AddTo(figures *Figures, name string) {
	fmt.Printf("%-28s p50 %7.1f ms, flooded %7.1f   p99 %7.1f ms, flooded %7.1f\n", name,
		stats.Median(w.p50[0]), stats.Median(w.p50[1]), stats.Median(w.p99[0]), stats.Median(w.p99[1]))
	figures.AddRatio(name+"_p50_ratio", w.p50[1], w.p50[0])
	figures.AddRatio(name+"_p99_ratio", w.p99[1], w.p99[0])
}
