package report_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A street has what 10,000 reports of Los Angeles have, whose licence keeps them out of here:
// nine tenths in four categories, a fifth on an address that already has one of the same
// category, and 44 of 100 with another one within 100 m.
type street struct{ *rand.Rand }

// words of a report are an object, what it is like, and where.
var (
	objects = strings.Fields(`sofa mattress fridge table washer carpet chair tyres boxes drawers television bench lamp container sign hydrant
		kerb drain fence branch puddle cable bicycle trolley shelves pallet paint toilet heater monitor cupboard plaster suitcase door window`)
	states = strings.Split(`broken/left behind/since Monday/for a week/lying on the ground/smells badly/blocks the pavement/dangerous for children/leaks/burnt/
		soaked by rain/with sharp edges/grows every day/attracts rats/people stumble/cars swerve/second time this year/nobody came/half torn/rusty and loose/
		dumped at night/rocks in the wind/very dirty/turned over/missing a piece/covered with stickers`, "/")
	places = strings.Split(`at the school/before the bakery/next to the bus stop/by the bridge/behind the market/corner of the square/opposite the church/in the alley/
		near the park gate/under the tree/beside the garage/at the crossing/in front of number nine/along the river/at the kindergarten/outside the pharmacy/
		by the playground/near the station/at the roundabout/behind the hotel/on the footpath/by the recycling point`, "/")
)

func pick[T any](s street, from []T) T { return from[s.IntN(len(from))] }

func (s street) report(at time.Time, known []report.Likeness) report.Likeness {
	r := report.Likeness{
		ID: uuid.New(), Title: pick(s, objects) + " " + pick(s, states), Description: pick(s, states) + " " + pick(s, places),
		Position:  report.Position{Latitude: -6.6 + s.Float64()*0.15, Longitude: 106.7 + s.Float64()*0.15},
		CreatedAt: at,
	}
	if len(known) > 0 && s.Float64() < 0.21 {
		r.Position = pick(s, known).Position
	}
	return r
}

// again returns a report of somebody else on the same: some metres away, hours or days later,
// and with two words in three the same.
func (s street) again(r report.Likeness) report.Likeness {
	again := r
	again.ID, again.CreatedAt = uuid.New(), r.CreatedAt.Add(time.Duration(s.ExpFloat64()*float64(48*time.Hour)))
	again.Position.Latitude += s.NormFloat64() * 12 / 111_320
	again.Position.Longitude += s.NormFloat64() * 12 / 111_320
	again.Title, again.Description = s.others(r.Title), s.others(r.Description)
	return again
}

// others says a text in other words: one in three is another, or is left out.
func (s street) others(text string) string {
	words := strings.Fields(text)
	for i := range words {
		switch s.IntN(6) {
		case 0:
			words[i] = pick(s, strings.Fields(pick(s, states)+" "+pick(s, places)))
		case 1:
			words[i] = ""
		}
	}
	return strings.Join(words, " ")
}

// Of 1,000 duplicates among 10,000 reports nine in ten are marked with their original, and
// four in five marks are right.
func TestPerhaps(t *testing.T) {
	t.Parallel()
	s := street{rand.New(rand.NewPCG(57, 1))}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	categories := make([][]report.Likeness, 4)
	originals := make(map[uuid.UUID]uuid.UUID) // of the duplicates
	for i := range 10_000 {
		in := &categories[s.IntN(len(categories))]
		*in = append(*in, s.report(begin.Add(time.Duration(i)*22*time.Second), *in))
	}
	for i := range categories {
		for _, r := range categories[i][:250] {
			again := s.again(r)
			originals[again.ID] = r.ID
			categories[i] = append(categories[i], again)
		}
	}
	marked, right := 0, 0
	for _, reports := range categories {
		for _, r := range reports {
			var older []report.Likeness
			for _, o := range reports {
				if o.ID != r.ID && !o.CreatedAt.After(r.CreatedAt) && math.Abs(o.Position.Latitude-r.Position.Latitude) < 0.001 && originals[o.ID] == uuid.Nil {
					older = append(older, o)
				}
			}
			if of := r.PerhapsOf(older); of != nil {
				marked++
				if originals[r.ID] == of.ID {
					right++
				}
			}
		}
	}
	recall, precision := float64(right)/float64(len(originals)), float64(right)/float64(marked)
	t.Logf("recall %.3f, precision %.3f", recall, precision)
	if recall < 0.9 || precision < 0.8 {
		t.Errorf("recall %.3f and precision %.3f, want 0.9 and 0.8", recall, precision)
	}
}

// A thing decides: two reports on one are alike in any words, and those on two are not.
func TestPerhapsOfAThing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dark := report.Likeness{ID: uuid.New(), Title: "Lamp is dark", Asset: 7, CreatedAt: now}
	for name, tt := range map[string]struct {
		of   report.Likeness
		want bool
	}{
		"the same thing":           {report.Likeness{Title: "No light", Asset: 7, CreatedAt: now.Add(-time.Hour)}, true},
		"another thing":            {report.Likeness{Title: "Lamp is dark", Asset: 8, CreatedAt: now.Add(-time.Hour)}, false},
		"no thing, the same words": {report.Likeness{Title: "Lamp is dark", CreatedAt: now.Add(-time.Hour)}, true},
		"far away":                 {report.Likeness{Title: "Lamp is dark", Position: report.Position{Latitude: 0.01}, CreatedAt: now.Add(-time.Hour)}, false},
		"long ago":                 {report.Likeness{Title: "Lamp is dark", CreatedAt: now.Add(-61 * 24 * time.Hour)}, false},
	} {
		if got := dark.PerhapsOf([]report.Likeness{tt.of}) != nil; got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
