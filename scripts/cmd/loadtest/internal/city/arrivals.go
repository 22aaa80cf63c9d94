package city

import (
	"iter"
	"math/rand/v2"
	"time"
)

// A Pattern is when the requests of a run are due. It knows nothing of the
// answers: a system that stalls does not make its users wait with theirs.
type Pattern struct {
	Events int     // how many requests
	Rate   float64 // in a second, on average
	// Weights divide the run into spans of the same length and say how busy
	// each is; none means an even load.
	Weights []float64
	Seed    uint64
}

// Duration returns how long the run is planned to take.
func (p Pattern) Duration() time.Duration {
	return time.Duration(float64(p.Events) / p.Rate * float64(time.Second))
}

// All yields the time of each request after the start: a Poisson process, as
// people who do not know of each other are.
func (p Pattern) All() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		random := rand.New(rand.NewPCG(p.Seed, 2718))
		var at time.Duration
		for range p.Events {
			gap := random.ExpFloat64() / p.rateAt(at)
			at += time.Duration(gap * float64(time.Second))
			if !yield(at) {
				return
			}
		}
	}
}

// rateAt returns the rate at a time of the run. The last span goes on until
// every request was due.
func (p Pattern) rateAt(at time.Duration) float64 {
	if len(p.Weights) == 0 {
		return p.Rate
	}
	sum := 0.0
	for _, w := range p.Weights {
		sum += w
	}
	span := int(float64(len(p.Weights)) * float64(at) / float64(p.Duration()))
	weight := p.Weights[min(span, len(p.Weights)-1)]
	// A span in which nearly nothing happens would make one gap of it, and the
	// run longer than planned.
	return p.Rate * max(weight*float64(len(p.Weights))/sum, 0.05)
}
