package deadletter

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/text"
)

// masked replaces what names a person.
const masked = "•••"

// personal are the fields that name a person, in the spelling of text.FoldName.
var personal = map[string]bool{"REPORTERID": true, "REPORTERNAME": true, "VOTERID": true}

// MaskBody returns a body as an operator may see it: as JSON where it is a
// JSON object, otherwise as a string.
func MaskBody(body []byte) json.RawMessage {
	if value, err := text.JSON(body); err == nil {
		if object, ok := value.(map[string]any); ok {
			return encodeJSON(mask(object, 0))
		}
	}
	return encodeJSON(maskText(strings.ToValidUTF8(string(body), "\uFFFD")))
}

// maxNested is how many times JSON may be a text of other JSON and still be shown
// as what it is. Each time that a text becomes part of another the backslashes in
// it are doubled: 32,000 times < thirteen texts deep would take 130 MB.
const maxNested = 3

// mask returns a copy of a JSON value without what names a person. The value is
// in a text in a text, nested times.
func mask(value any, nested int) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			if object[name] = masked; !personal[text.FoldName(name)] {
				object[name] = mask(item, nested)
			}
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = mask(item, nested)
		}
		return list
	case string: // which may hold JSON of its own
		inner := strings.TrimSpace(v)
		if inner == "" || !strings.ContainsRune(`{["`, rune(inner[0])) {
			return v
		}
		if nested == maxNested {
			return maskText(v)
		}
		if value, err := text.JSON([]byte(inner)); err == nil {
			return string(encodeJSON(mask(value, nested+1)))
		}
		if strings.Contains(inner, "{") {
			return maskText(v)
		}
	}
	return value
}

// words are what a text other than JSON may show: names of fields and the
// values of closed sets. Any other word may name a person, however it is
// quoted, escaped or misspelt.
var words = regexp.MustCompile(`[\p{L}\p{M}\p{N}_@.+-]+`)

var shownWords = []string{
	"report_id", "report_version", "report_title", "new_status", "previous_message_id", "previous_status_version", "reply", "note", "reporter_id", "reporter_name", "category_id",
	"category_name", "privacy_level", "previous_category_id", "previous_latitude", "previous_longitude", "place_moved", "by_reporter", "verdict_until", "retracted", "voter_id", "vote_type", "new_score", "photo_id", "question_id", "ends_on", "reason", "latitude", "longitude", "asset", "department", "timestamp", "due_at", "level", "action", "hidden", "private", "redacted_notes", "true", "false", "null",
	string(event.Pending), string(event.InProgress), string(event.Resolved), string(event.Rejected),
	string(event.Public), string(event.Anonymous), string(event.Upvote), string(event.Downvote),
	string(event.PhotoUnsupported), string(event.PhotoTooLarge), string(event.PhotoDamaged), string(event.PhotoInfected),
	string(event.PhotoUnsuitable), string(event.PhotoFailed), string(event.ShownAgain), string(event.Redacted), string(event.NameHidden), string(event.Withdrawn), string(event.WordsRemoved),
}

func maskText(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if slices.Contains(shownWords, word) {
			return word
		}
		return masked
	})
}

// MaskHeaders returns headers as an operator may see them: those that we or
// the broker write, and only the names of others.
func MaskHeaders(encoded json.RawMessage) json.RawMessage {
	var headers map[string]json.RawMessage
	if json.Unmarshal(encoded, &headers) != nil {
		return json.RawMessage(`{}`)
	}
	for name := range headers {
		switch {
		case name == event.RecipientHeader:
			headers[name] = json.RawMessage(`"sealed"`)
		case !failure.KnownHeader(name):
			headers[name] = encodeJSON(masked)
		}
	}
	return encodeJSON(headers)
}

var errMasked = errors.New("a masked value was moved or copied")

// unmask returns edited with the values of original wherever the editor left
// what they were shown. A masked value anywhere else is an error.
func unmask(edited, original any) (any, error) { return restore(edited, mask(original, 0), original) }

// restore is unmask for a part of which the editor was shown the given one. It
// visits each value once, so that depth costs no more than length.
func restore(edited, shown, original any) (any, error) {
	switch e := edited.(type) {
	case map[string]any:
		s, _ := shown.(map[string]any)
		o, _ := original.(map[string]any)
		for name, item := range e {
			before, kept := s[name], o[name]
			if _, known := o[name]; known && personal[text.FoldName(name)] {
				if item == masked {
					e[name] = kept
					continue
				}
				before, kept = nil, nil // the editor has not seen it
			}
			whole, err := restore(item, before, kept)
			if err != nil {
				return nil, err
			}
			e[name] = whole
		}
	case []any:
		s, _ := shown.([]any)
		o, _ := original.([]any)
		for i, item := range e {
			var before, kept any
			if i < len(s) {
				before, kept = s[i], o[i]
			}
			whole, err := restore(item, before, kept)
			if err != nil {
				return nil, err
			}
			e[i] = whole
		}
	case string:
		if e == shown {
			return original, nil
		}
		if strings.Contains(e, masked) {
			return nil, errMasked
		}
	}
	return edited, nil
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
	orNull := func(value json.RawMessage) json.RawMessage {
		if value == nil {
			return json.RawMessage("null")
		}
		return value
	}
	changes := []Change{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(was[name]) != string(is[name]) {
			changes = append(changes, Change{name, orNull(was[name]), orNull(is[name])})
		}
	}
	return changes
}

// fields takes a body apart, or shows one that is not an object as a whole.
func fields(body json.RawMessage) map[string]json.RawMessage {
	object := make(map[string]json.RawMessage)
	if json.Unmarshal(body, &object) != nil || object == nil {
		return map[string]json.RawMessage{"": body}
	}
	return object
}

func encodeJSON(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return encoded
}
