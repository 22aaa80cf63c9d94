package api

import "testing"

// No part of a text is a formula for a spreadsheet, whatever separates its cells.
func TestCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "lamp": "lamp", "a = b, c-d; e+f": "a = b, c-d; e+f", "Jl. A-5": "Jl. A-5",
		"=1+1": "'=1+1", "+62 811": "'+62 811", "-1": "'-1", "@a": "'@a", "\t=1": "'\t=1", " =1": "' =1", `"=1"`: `'"=1"`,
		`lamp;=HYPERLINK("x")`: `lamp;'=HYPERLINK("x")`, "a,=1": "a,'=1", "a\t=1": "a\t'=1", "a|=1": "a|'=1", "a\r\n=1": "a\r'\n=1",
		`a;"=1"`: `a;'"=1"`, "a; =1": "a;' =1", "a;b;+1,-2": "a;b;'+1,'-2", "\uff1d1": "'\uff1d1", "a;\uff0b1": "a;'\uff0b1",
		"\uff0d1": "'\uff0d1", "\uff201": "'\uff201", "\u22121": "'\u22121", ";=1": ";'=1", "=": "'=",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
