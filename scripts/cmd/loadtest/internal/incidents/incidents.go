// Package incidents is what the load is made of: made-up things with their category
// and place that people report, and when they do.
package incidents

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// An Incident is one thing that somebody reports.
type Incident struct {
	Category  string // one of the stack's category names
	Title     string
	Address   string
	Latitude  float64
	Longitude float64
	Anonymous bool
}

// kinds are the things, the frequent ones several times.
var kinds = []struct{ title, category string }{
	{"Bulky items", "Waste and illegal dumping"}, {"Bulky items", "Waste and illegal dumping"}, {"Bulky items", "Waste and illegal dumping"},
	{"Graffiti removal", "Graffiti"}, {"Graffiti removal", "Graffiti"},
	{"Illegal dumping", "Waste and illegal dumping"},
	{"Pothole", "Roads and potholes"}, {"Pothole", "Roads and potholes"},
	{"Streetlight is dark", "Street lights and signals"},
	{"Broken sidewalk", "Sidewalks"},
	{"Fallen tree", "Parks and trees"},
	{"Water leak", "Water and drainage"},
	{"Parking across a crossing", "Traffic and parking"},
	{"Stray animal", "Animals"},
}

// At returns an incident by its number, around the middle of a city. The same seed
// and number give the same one.
func At(seed uint64, number int) Incident {
	const latitude, longitude = -6.9147, 107.6098
	random := rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // numbers are positive
	kind := kinds[random.IntN(len(kinds))]
	return Incident{
		Category: kind.category, Title: kind.title,
		Address:   fmt.Sprintf("%d Street No. %d", 1+random.IntN(400), 1+random.IntN(90)),
		Latitude:  latitude + random.NormFloat64()*0.03,
		Longitude: longitude + random.NormFloat64()*0.03,
		Anonymous: random.IntN(5) == 0,
	}
}

// A Pattern is when the requests of a run are due. It knows nothing of the
// answers: a system that stalls does not make its users wait with theirs.
type Pattern struct {
	Events int     // how many requests
	Rate   float64 // in a second, on average
	Seed   uint64
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
			at += time.Duration(random.ExpFloat64() / p.Rate * float64(time.Second))
			if !yield(at) {
				return
			}
		}
	}
}
