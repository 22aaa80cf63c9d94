package appearance

import (
	"fmt"
	"testing"
)

// Whatever colour a city has, text in it and on it can be read in both themes, and a
// colour that can be read already stays.
func TestTonesCanBeRead(t *testing.T) {
	t.Parallel()
	for r := 0; r < 256; r += 51 {
		for g := 0; g < 256; g += 51 {
			for b := 0; b < 256; b += 51 {
				a := Appearance{Colour: fmt.Sprintf("#%02x%02x%02x", r, g, b)}
				light, dark, ok := a.Tones()
				if !ok {
					t.Fatalf("%s has no tones", a.Colour)
				}
				for name, pair := range map[string][2]string{
					"on light": {light.Accent, "#efede7"}, "on white": {light.Accent, "#ffffff"}, "on soft light": {light.Accent, light.Soft}, "button": {light.OnAccent, light.Accent},
					"on dark": {dark.Accent, "#1c2024"}, "on darkest": {dark.Accent, "#101214"}, "on soft dark": {dark.Accent, dark.Soft}, "dark button": {dark.OnAccent, dark.Accent},
				} {
					if got := contrast(parse(pair[0]), parse(pair[1])); got < minContrast {
						t.Errorf("%s, %s: %s on %s has %.2f, want %.1f", a.Colour, name, pair[0], pair[1], got, minContrast)
					}
				}
			}
		}
	}
	if light, _, _ := (Appearance{Colour: "#0a4da2"}).Tones(); light.Accent != "#0a4da2" || light.OnAccent != "#ffffff" {
		t.Errorf("a dark blue became %+v", light)
	}
	if _, _, ok := (Appearance{}).Tones(); ok {
		t.Error("no colour has tones")
	}
}
