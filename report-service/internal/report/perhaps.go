package report

import (
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// A Likeness is what of a report shows that it is probably the same as another.
type Likeness struct {
	ID          uuid.UUID
	Title       string
	Description string
	Position    Position
	Asset       int32 // the thing's id; 0 for none
	CreatedAt   time.Time
}

const (
	// LikelyMetres is how far from each other reports on one problem are at most.
	LikelyMetres = 100.0
	// LikelyTime is how long after each other they come at most.
	LikelyTime = 60 * 24 * time.Hour

	// likely is the likeness from which on a report is marked. Words count most: an address
	// that has one heap of waste has others. TestPerhaps says how often that is right.
	likely                              = 0.64
	placeWeight, wordWeight, timeWeight = 0.35, 0.55, 0.10

	stem = 5 // letters of a word that are compared, so that its forms are alike
)

// PerhapsOf returns the report among older ones of the same category, the oldest first, that r
// is most like, or nil if it is probably none of them. Reports on one thing are alike, and those on two are
// not, whatever they say.
func (r Likeness) PerhapsOf(older []Likeness) *Likeness {
	var most *Likeness
	best := 0.0
	for i, o := range older {
		if like := r.like(o); like >= likely && like > best {
			most, best = &older[i], like
		}
	}
	return most
}

// like returns how much r is like an older report, from 0 to 1.
func (r Likeness) like(o Likeness) float64 {
	switch {
	case r.Asset != 0 && r.Asset == o.Asset:
		return 1
	case r.Asset != 0 && o.Asset != 0:
		return 0
	}
	near, soon := 1-metres(r.Position, o.Position)/LikelyMetres, 1-float64(r.CreatedAt.Sub(o.CreatedAt))/float64(LikelyTime)
	if near < 0 || soon < 0 {
		return 0
	}
	words := common(stems(r.Title+" "+r.Description), stems(o.Title+" "+o.Description))
	return placeWeight*near + wordWeight*words + timeWeight*soon
}

// metres returns the distance of two places that are near each other.
func metres(a, b Position) float64 {
	const perDegree = 111_320
	return perDegree * math.Hypot(a.Latitude-b.Latitude, (a.Longitude-b.Longitude)*math.Cos(a.Latitude*math.Pi/180))
}

// stems returns the beginnings of the longer words of a text.
func stems(text string) map[string]bool {
	found := make(map[string]bool)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		if letters := []rune(word); len(letters) > 3 {
			found[string(letters[:min(len(letters), stem)])] = true
		}
	}
	return found
}

// common returns the share of the words of two reports that both have.
func common(a, b map[string]bool) float64 {
	n := 0
	for word := range a {
		if b[word] {
			n++
		}
	}
	return 2 * float64(n) / math.Max(1, float64(len(a)+len(b)))
}
