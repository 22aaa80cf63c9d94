package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
)

// checkJSON compares r's body with the document, and adds its faults to faults. It
// decodes it once: openapi3filter would do it again, and dependentFaults, too. The
// handler reads what was sent, tidied and with the defaults of missing members.
func (op *operation) checkJSON(r *http.Request, faults *faultList) error {
	body, err := op.readText(r)
	if err != nil {
		return err
	}
	value, err := decode(body)
	if err != nil {
		return err
	}
	if countNames(body) != countMembers(value) {
		faults.addRepeated(body)
	}
	t := tidying{faultList: faults}
	value = t.tidy(op.body, value, nil)
	op.dependentFaults(value, faults)
	filledIn := false
	options := append([]openapi3.SchemaValidationOption{
		openapi3.VisitAsRequest(), openapi3.MultiErrors(), openapi3.DefaultsSet(func() { filledIn = true }),
	}, op.options.SchemaValidationOptions...)
	op.formats.addRequest(faults, op.body.VisitJSON(value, options...))
	if filledIn || t.changed {
		if body, err = json.Marshal(value); err != nil {
			return fmt.Errorf("encode the body with its defaults: %w", err)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// byteOrderMark is what some editors and libraries put before text in UTF-8. RFC
// 8259 (8.1) lets a reader ignore it.
var byteOrderMark = []byte("\uFEFF")

// readText returns r's body if the document takes its type and it is text.
func (op *operation) readText(r *http.Request) ([]byte, error) {
	params, err := checkContent(op.Operation.RequestBody.Value.Content, r)
	if err != nil {
		return nil, err
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return nil, service.UnsupportedMediaType.New("the body must have the charset UTF-8, or none")
	}
	body, err := io.ReadAll(r.Body)
	body = bytes.TrimPrefix(body, byteOrderMark)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, err
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, service.RequestTimeout.New("the body did not arrive in time")
	case err != nil:
		return nil, service.MalformedBody.New("the body ended early")
	case len(body) == 0:
		return nil, service.MalformedBody.New("the body is missing")
	case !utf8.Valid(body):
		return nil, service.MalformedBody.New("the body is not UTF-8")
	}
	return body, nil
}

// decode returns the one JSON value that body is.
func decode(body []byte) (value any, err error) {
	if value, err = text.JSON(body); err != nil {
		detail := "not JSON"
		var whole json.RawMessage // a Decoder says less about its position
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &whole)); ok {
			detail = fmt.Sprintf("not JSON, or nested too deep, at byte %d", syntax.Offset)
		}
		return nil, service.MalformedBody.New(detail)
	}
	if hasLoneSurrogate(body) {
		return nil, service.MalformedBody.New(`half a character: an escape such as \ud83d needs its second half, such as \ude80`)
	}
	return value, nil
}

// hasLoneSurrogate reports whether body, which is JSON, escapes one half of a
// surrogate pair without the other (RFC 8259, 8.2). Go would replace it with U+FFFD,
// so that the stored text would differ from the sent one.
func hasLoneSurrogate(body []byte) bool {
	const low, lowest, end = 0xDC00, 0xD800, 0xE000
	pending := false // a first half, right before
	for i := 0; i < len(body); i++ {
		var unit uint64
		if body[i] == '\\' {
			i++ // of the character that is escaped
			if body[i] == 'u' {
				unit, _ = strconv.ParseUint(string(body[i+1:i+5]), 16, 16) // four digits, as in all JSON
				i += 4
			}
		}
		second := unit >= low && unit < end
		if pending != second {
			return true
		}
		pending = unit >= lowest && unit < low
	}
	return false
}

// A tidying goes through a body before it is compared with the document.
type tidying struct {
	*faultList
	changed bool // whether a string has another form now
}

// freeForm is the schema of members that the document lets be anything.
var freeForm = &openapi3.Schema{}

// tidy returns value, to which the names in at lead, with the strings for whose format there
// is a tidied form in that form. It leaves out the parts that schema has no room for, so that
// the comparison costs no more than the document allows for: members that it does not know,
// which are faults, elements of a list beyond the first one too many, and the contents of a
// list or an object that should be neither. The one character that JSON can write and
// Postgres cannot keep is a fault of any string.
func (t *tidying) tidy(schema *openapi3.Schema, value any, at []string) any {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			t.add(pointerOf(at), "contains a NUL character, which cannot be kept")
		}
		if form, ok := tidyForms[schema.Format]; ok {
			tidied := form(value)
			t.changed = t.changed || tidied != value
			return tidied
		}
	case []any:
		if !schema.Type.Permits(openapi3.TypeArray) {
			return []any{}
		}
		element := freeForm
		if schema.Items != nil {
			element = schema.Items.Value
			value = value[:min(uint64(len(value)), *schema.MaxItems+1)]
		}
		for i := range value {
			value[i] = t.tidy(element, value[i], append(at, strconv.Itoa(i)))
		}
		return value
	case map[string]any:
		if !schema.Type.Permits(openapi3.TypeObject) {
			return map[string]any{}
		}
		closed := schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has
		for _, name := range slices.Sorted(maps.Keys(value)) {
			member := freeForm
			if property := schema.Properties[name]; property != nil {
				member = property.Value
			} else if closed {
				t.add(pointerOf(append(at, name)), "unknown field")
				delete(value, name)
				continue
			}
			value[name] = t.tidy(member, value[name], append(at, name))
		}
	}
	return value
}

// countNames returns how many names of members body, which is JSON, has: one for each
// colon outside of strings.
func countNames(body []byte) (n int) {
	inString := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			inString = !inString
		case '\\': // only in strings
			i++
		case ':':
			if !inString {
				n++
			}
		}
	}
	return n
}

// countMembers returns how many members the objects of value have.
func countMembers(value any) (n int) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			n += countMembers(element)
		}
	case map[string]any:
		n = len(value)
		for _, member := range value {
			n += countMembers(member)
		}
	}
	return n
}

// addRepeated adds the members of body, which is JSON, that have a name which their
// object had before. Readers of JSON do not agree on which of them counts (RFC 8259,
// 4): a report would be public for one and anonymous for another.
func (l *faultList) addRepeated(body []byte) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	l.addRepeatedBelow(decoder, nil)
}

// addRepeatedBelow reads the next value of decoder, to which the names in at lead.
func (l *faultList) addRepeatedBelow(decoder *json.Decoder, at []string) {
	token, err := decoder.Token()
	if err != nil || l.more { // it was decoded before, so that it is the end
		return
	}
	switch token {
	case json.Delim('['):
		for i := 0; decoder.More() && !l.more; i++ {
			l.addRepeatedBelow(decoder, append(at, strconv.Itoa(i)))
		}
		_, _ = decoder.Token()
	case json.Delim('{'):
		known := make(map[string]bool)
		for decoder.More() && !l.more {
			name, _ := decoder.Token()
			at := append(at, fmt.Sprint(name))
			if known[at[len(at)-1]] {
				l.add(pointerOf(at), "given more than once")
			}
			known[at[len(at)-1]] = true
			l.addRepeatedBelow(decoder, at)
		}
		_, _ = decoder.Token()
	}
}

// dependentFaults checks the body's dependentRequired; see Document.plain.
func (op *operation) dependentFaults(body any, faults *faultList) {
	members, _ := body.(map[string]any) // if it is not an object, the schema says so
	for _, name := range slices.Sorted(maps.Keys(op.body.DependentRequired)) {
		if _, given := members[name]; !given {
			continue
		}
		for _, other := range op.body.DependentRequired[name] {
			if _, given := members[other]; !given {
				faults.add("/"+escapePointer(other), "missing beside "+name)
			}
		}
	}
}
