package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
)

// JSON returns the one value that text is. Its numbers are json.Number, so that they
// can be written as they were read. Anything behind the value is an error.
func JSON(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

// FoldName returns a form of a field's name that is equal for all of its spellings:
// those that encoding/json takes for the same, and those of other programs,
// such as voterId.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		for { // the first of the letters that differ in case alone
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}
