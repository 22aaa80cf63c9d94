package story_test

import (
	"encoding/json"
	"testing"

	"github.com/cityconnect/cityconnect/platform/story"
)

// same reports whether two entries say the same, whatever the zones of their times.
func same(a, b story.Entry) bool { return line(a) == line(b) }

func line(e story.Entry) string {
	e.At = e.At.UTC()
	if e.Until != nil {
		e.Until = new(e.Until.UTC())
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// text returns the entries, one a line.
func text(t *testing.T, entries []story.Entry) (lines string) {
	t.Helper()
	for _, e := range entries {
		lines += line(e) + "\n"
	}
	return lines
}
