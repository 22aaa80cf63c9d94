// Package appearance is how a city looks and writes: its colour on the page and in mails,
// and the words around its mails.
//
// It promises that text in the city's colour, and on it, can be read: tones are as light or
// as dark as WCAG 1.4.3 needs on every ground of the page.
package appearance

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// ErrStale refuses a change of an appearance that is at another revision.
var ErrStale error = fault.New("stale", "the appearance is at another revision by now")

// Words are what a city writes around its mails in one language.
type Words struct {
	Greeting  string `json:"greeting,omitempty"`  // a line before the text
	Signature string `json:"signature,omitempty"` // lines after it
}

// An Appearance is the colour and the words of a city.
type Appearance struct {
	Revision int64            // how often it was changed; 0 is never
	Colour   string           // such as #0b6b62, or "" for that of the product
	Words    map[string]Words // by language
}

// A Tone is the city's colour on a ground.
type Tone struct {
	Accent   string // of text and buttons
	OnAccent string // of text on it
	Soft     string // of a ground on which Accent can be read
}

// minContrast is that of text in WCAG 1.4.3.
const minContrast = 4.5

type colour [3]float64 // red, green and blue, from 0 to 1

var (
	black, white = colour{}, colour{1, 1, 1}
	// The grounds of the page that are least unlike a text of theirs; styles/tokens.css has all.
	darkestLight, lightestDark = parse("#efede7"), parse("#1c2024")
)

// Tones returns the city's colour on light and on dark grounds; ok is false without one.
func (a Appearance) Tones() (light, dark Tone, ok bool) {
	if a.Colour == "" {
		return Tone{}, Tone{}, false
	}
	c := parse(a.Colour)
	return tone(c, darkestLight, white, black), tone(c, lightestDark, lightestDark, white), true
}

// tone mixes c with towards, black or white, until it can be read on ground and on its own soft ground.
func tone(c, ground, surface, towards colour) Tone {
	const steps = 50
	for i := range steps + 1 {
		accent := mix(c, towards, float64(i)/steps)
		soft := mix(surface, accent, 0.1)
		if i < steps && (contrast(accent, ground) < minContrast || contrast(accent, soft) < minContrast) {
			continue
		}
		on := white
		if contrast(accent, black) > contrast(accent, white) {
			on = black
		}
		return Tone{Accent: accent.String(), OnAccent: on.String(), Soft: soft.String()}
	}
	panic("unreachable")
}

func parse(hex string) (c colour) {
	for i := range c {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			panic("appearance: " + hex + " is not a colour")
		}
		c[i] = float64(n) / 255
	}
	return c
}

// String returns c as CSS has it.
func (c colour) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0]*255)), int(math.Round(c[1]*255)), int(math.Round(c[2]*255)))
}

func mix(a, b colour, part float64) (c colour) {
	for i := range c {
		c[i] = a[i] + (b[i]-a[i])*part
	}
	return parse(c.String()) // as it is shown
}

// contrast is the ratio of WCAG, from 1 to 21.
func contrast(a, b colour) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func (c colour) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}
