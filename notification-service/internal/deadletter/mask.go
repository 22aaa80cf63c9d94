package deadletter

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/event"
)

// masked stands where a person was named.
const masked = "•••"

// personal are the fields that name a person.
var personal = []string{"reporter_id", "reporter_name", "voter_id"}

// personalText finds the same in what is no JSON.
var personalText = regexp.MustCompile(`"(reporter_id|reporter_name|voter_id)"(\s*:\s*)("(?:[^"\\]|\\.)*"?|[^,}\s]*)`)

// MaskBody returns a body as an operator may see it: as JSON where it is
// JSON, otherwise as a string.
func MaskBody(body []byte) json.RawMessage {
	var value any
	if json.Unmarshal(body, &value) == nil {
		if shown, err := json.Marshal(maskValue(value)); err == nil {
			return shown
		}
	}
	text := personalText.ReplaceAllString(strings.ToValidUTF8(string(body), "\uFFFD"), `"$1"$2"`+masked+`"`)
	shown, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return shown
}

func maskValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			if slices.Contains(personal, name) {
				v[name] = masked
			} else {
				v[name] = maskValue(item)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = maskValue(item)
		}
	}
	return value
}

// MaskHeaders returns headers as an operator may see them.
func MaskHeaders(encoded json.RawMessage) json.RawMessage {
	var headers map[string]json.RawMessage
	if json.Unmarshal(encoded, &headers) != nil {
		return json.RawMessage(`{}`)
	}
	if _, ok := headers[event.RecipientHeader]; ok {
		headers[event.RecipientHeader] = json.RawMessage(`"sealed"`)
	}
	shown, err := json.Marshal(headers)
	if err != nil {
		panic(err) // it was JSON before
	}
	return shown
}

// unmask puts back into an edited body what the editor was not shown.
func unmask(edited, original map[string]json.RawMessage) {
	for _, name := range personal {
		var shown string
		if json.Unmarshal(edited[name], &shown) != nil || shown != masked {
			continue
		}
		if kept, ok := original[name]; ok {
			edited[name] = kept
		}
	}
}

// A Change is a field that an edit changes. A field that is missing is null.
type Change struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// diff compares two bodies as an operator may see them.
func diff(before, after json.RawMessage) []Change {
	was, is := fields(before), fields(after)
	all := maps.Clone(was)
	maps.Copy(all, is)
	changes := []Change{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(was[name]) != string(is[name]) {
			changes = append(changes, Change{name, orNull(was[name]), orNull(is[name])})
		}
	}
	return changes
}

// fields takes a body apart, or shows one that is no object as a whole.
func fields(body json.RawMessage) map[string]json.RawMessage {
	object := make(map[string]json.RawMessage)
	if json.Unmarshal(body, &object) != nil || object == nil {
		return map[string]json.RawMessage{"": body}
	}
	return object
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}
