package onejson_test

import (
	"encoding/json"
	"testing"

	"github.com/cityconnect/cityconnect/platform/onejson"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"n":1e30}`, ` [12345678901234567890] `, "null", `"text"`, "0.10"} {
		value, err := onejson.Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := json.Marshal(value)
		var want json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || string(again) != string(want) {
			t.Errorf("%s is %s again, want its numbers as they were", text, again)
		}
	}
	for _, text := range []string{"", "{", "1 2", "{}}", "{} x", `"a" "b"`} {
		if value, err := onejson.Decode([]byte(text)); err == nil {
			t.Errorf("%q is %v, want an error", text, value)
		}
	}
}
