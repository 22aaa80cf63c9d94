package api

import (
	"bytes"
	"regexp"
	"strings"
)

// separators of cells, by their names in the document. Spreadsheets expect that of
// their system's settings: a semicolon where a comma is in decimal numbers.
var separators = map[string]string{"comma": ",", ",": ",", "semicolon": ";", ";": ";", "tab": "\t"}

// A table writes lines of CSV (RFC 4180) with all cells in quotes.
type table struct {
	w         *bytes.Buffer
	separator string
}

// begin writes the first line. Spreadsheets take a file without a byte order mark for one
// in their system's old encoding.
func (t table) begin(columns []string) {
	_, _ = t.w.WriteString("\uFEFF")
	t.write(columns)
}

func (t table) write(cells []string) {
	for i, c := range cells {
		if i > 0 {
			_, _ = t.w.WriteString(t.separator)
		}
		_, _ = t.w.WriteString(`"` + strings.ReplaceAll(c, `"`, `""`) + `"`)
	}
	_, _ = t.w.WriteString("\r\n")
}

// formulas finds where a spreadsheet could begin to read a formula: at the beginning
// of a cell, and behind any separator, because a spreadsheet with another one than
// that of the file cuts there. White space and quotes may be in between.
var formulas = regexp.MustCompile(`(^|[,;|\t\r\n])([\s"']*[=+@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}\x{2212}-])`)

// cell escapes text that a spreadsheet would take for a formula: otherwise a
// resident could inject a formula that runs on an official's machine.
func cell(text string) string {
	if !strings.ContainsAny(text, formulaSigns) { // as nearly always; the expression takes fifty times as long
		return text
	}
	return formulas.ReplaceAllString(text, "$1'$2")
}

// formulaSigns are those one of which every match of formulas has.
const formulaSigns = "=+@-\uFF1D\uFF0B\uFF0D\uFF20\u2212"
