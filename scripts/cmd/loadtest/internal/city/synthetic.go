package city

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// syntheticIncidents is how many different incidents a made-up city has.
const syntheticIncidents = 5000

// kinds are the made-up things, the frequent ones several times.
var kinds = []string{
	"Bulky items", "Bulky items", "Bulky items", "Graffiti removal", "Graffiti removal",
	"Illegal dumping", "Pothole", "Pothole", "Streetlight is dark", "Broken sidewalk",
	"Fallen tree", "Water leak", "Parking across a crossing", "Stray animal",
}

// Synthetic makes up a city around a centre. The same seed gives the same city.
func Synthetic(seed uint64) *City {
	const latitude, longitude = -6.9147, 107.6098
	random := rand.New(rand.NewPCG(seed, 311))
	c := &City{Source: "synthetic"}
	for range syntheticIncidents {
		title := kinds[random.IntN(len(kinds))]
		c.incidents = append(c.incidents, Incident{
			Category: categoryOf(title), Title: title,
			Address:   fmt.Sprintf("%d Street No. %d", 1+random.IntN(400), 1+random.IntN(90)),
			Latitude:  new(latitude + random.NormFloat64()*0.03),
			Longitude: new(longitude + random.NormFloat64()*0.03),
			Anonymous: random.IntN(5) == 0,
		})
	}
	for hour := range c.Hours {
		c.Hours[hour] = 1 + 9*math.Exp(-math.Pow(float64(hour-11)/3.5, 2)) // most before noon
	}
	return c
}
