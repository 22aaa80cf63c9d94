package city_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/city"
)

const head = "created_at,category,status,latitude,longitude,address,anonymous\n"

func TestRead(t *testing.T) {
	t.Parallel()
	c, err := city.Read(strings.NewReader(head +
		"2020-01-01T00:05:00,Illegal Dumping Pickup,Closed,34.19,-118.49,\"16815 W VANOWEN ST, 91406\",N\n" +
		"2020-01-01T09:23:00,Multiple Streetlight Issue,Open,34.00,-118.26,704 E 43RD PL,Y\n" +
		"2020-01-01T09:24:00,Other,Open,34.00,,,Y\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := city.Incident{
		Category: "Street lights and signals", Title: "Multiple Streetlight Issue", Address: "704 E 43RD PL",
		Latitude: new(34.0), Longitude: new(-118.26), Anonymous: true,
	}
	if got := c.At(1); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.At(2); got.Latitude != nil || got.Longitude != nil || got.Category != city.Other {
		t.Errorf("got %+v, want another thing without a position", got)
	}
	if c.At(3) != c.At(0) || c.Hours[0] != 1 || c.Hours[9] != 2 {
		t.Errorf("got fourth %+v and hours %v, want the first again, and hours 0 and 9", c.At(3), c.Hours)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "heading",
		"a,b\n":                          "created_at",
		head:                             "no rows",
		head + "x,y,z,1,2,a,N\n":         "line 2: created_at",
		head + "2020-01-01T00:05:00,y\n": "read a row",
		head + "2020-01-01T00:05:00,y,z,north,2,a,N\n": "line 2: latitude",
		head + "2020-01-01T00:05:00,y,z,1,east,a,N\n":  "line 2: longitude",
	} {
		if _, err := city.Read(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error about %q", in, err, want)
		}
	}
}

func TestSyntheticIsTheSameAgain(t *testing.T) {
	t.Parallel()
	a, b := city.Synthetic(7), city.Synthetic(7)
	for n := range a.Len() {
		if !reflect.DeepEqual(a.At(n), b.At(n)) {
			t.Fatalf("incident %d: %+v and %+v", n, a.At(n), b.At(n))
		}
	}
}

// However the load is shaped, all requests are due within about the planned
// time, and in order.
func TestPattern(t *testing.T) {
	t.Parallel()
	for name, weights := range map[string][]float64{"even": nil, "day": city.Synthetic(1).Hours[:], "empty hours": {0, 1, 0, 1}} {
		p := city.Pattern{Events: 20_000, Rate: 500, Weights: weights, Seed: 3}
		count, last := 0, time.Duration(0)
		for at := range p.All() {
			if at < last {
				t.Fatalf("%s: request %d is due at %v, before %v", name, count, at, last)
			}
			count, last = count+1, at
		}
		if off := math.Abs(float64(last)/float64(p.Duration()) - 1); count != p.Events || off > 0.1 {
			t.Errorf("%s: %d requests until %v, want %d until about %v", name, count, last, p.Events, p.Duration())
		}
	}
}

// A busy hour has as many more requests as the log says.
func TestPatternFollowsTheHours(t *testing.T) {
	t.Parallel()
	p := city.Pattern{Events: 40_000, Rate: 1000, Weights: []float64{1, 3}, Seed: 3}
	early := 0
	for at := range p.All() {
		if at < p.Duration()/2 {
			early++
		}
	}
	if share := float64(early) / float64(p.Events); share < 0.22 || share > 0.28 {
		t.Errorf("%.2f of the requests are due in the quiet half, want a quarter", share)
	}
}
