package text_test

import (
	"encoding/json"
	"testing"

	"github.com/cityconnect/cityconnect/platform/text"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{"n":1e30}`, ` [12345678901234567890] `, "null", `"text"`, "0.10"} {
		value, err := text.JSON([]byte(input))
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		again, err := json.Marshal(value)
		var want json.RawMessage
		if err := json.Unmarshal([]byte(input), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || string(again) != string(want) {
			t.Errorf("%s is %s again, want its numbers as they were", input, again)
		}
	}
	for _, input := range []string{"", "{", "1 2", "{}}", "{} x", `"a" "b"`} {
		if value, err := text.JSON([]byte(input)); err == nil {
			t.Errorf("%q is %v, want an error", input, value)
		}
	}
}
