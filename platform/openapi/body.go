package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
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
	value = faults.trim(op.body, value, nil)
	if bytes.Contains(body, []byte(`\u0000`)) {
		faults.addNUL(value, nil)
	}
	value, tidied := tidy(op.body, value)
	op.dependentFaults(value, faults)
	filledIn := false
	options := append([]openapi3.SchemaValidationOption{
		openapi3.VisitAsRequest(), openapi3.MultiErrors(), openapi3.DefaultsSet(func() { filledIn = true }),
	}, op.options.SchemaValidationOptions...)
	op.formats.addRequest(faults, op.body.VisitJSON(value, options...))
	if filledIn || tidied {
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
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || op.Operation.RequestBody.Value.Content[mediaType] == nil {
		wanted := slices.Sorted(maps.Keys(op.Operation.RequestBody.Value.Content))
		return nil, service.UnsupportedMediaType.New("the body must be " + strings.Join(wanted, " or "))
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return nil, service.UnsupportedMediaType.New("the body must have the charset UTF-8, or none")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, service.UnsupportedMediaType.New("the body must be sent without a Content-Encoding")
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
		unit := rune(-1)
		if body[i] == '\\' {
			i++ // of the character that is escaped
			if body[i] == 'u' {
				unit = 0
				for _, digit := range body[i+1 : i+5] {
					unit = unit<<4 | hexDigit(digit)
				}
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

func hexDigit(c byte) rune {
	switch {
	case c >= 'a':
		return rune(c-'a') + 10
	case c >= 'A':
		return rune(c-'A') + 10
	}
	return rune(c - '0')
}

// trim returns value without the parts that schema has no room for, so that the
// comparison with the document costs no more than the document allows for: members
// that it does not know, which trim adds to l, elements of a list beyond the first one
// too many, and the contents of a list or an object that should be neither. The names
// in at lead to value.
func (l *faultList) trim(schema *openapi3.Schema, value any, at []string) any {
	switch value := value.(type) {
	case []any:
		if !schema.Type.Permits(openapi3.TypeArray) {
			return []any{}
		}
		value = value[:min(uint64(len(value)), *schema.MaxItems+1)]
		for i, element := range value {
			value[i] = l.trim(schema.Items.Value, element, append(at, strconv.Itoa(i)))
		}
		return value
	case map[string]any:
		if !schema.Type.Permits(openapi3.TypeObject) {
			return map[string]any{}
		}
		closed := schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if property := schema.Properties[name]; property != nil {
				value[name] = l.trim(property.Value, value[name], append(at, name))
			} else if closed {
				l.add(pointerOf(append(at, name)), "unknown field")
				delete(value, name)
			}
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

// tidy returns value with the strings for whose format there is a tidied form in
// that form, and whether there were any.
func tidy(schema *openapi3.Schema, value any) (tidied any, changed bool) {
	switch value := value.(type) {
	case string:
		if form, ok := tidyForms[schema.Format]; ok {
			tidied := form(value)
			return tidied, tidied != value
		}
	case []any:
		if schema.Items == nil {
			return value, false
		}
		for i, element := range value {
			inner, innerChanged := tidy(schema.Items.Value, element)
			value[i], changed = inner, changed || innerChanged
		}
		return value, changed
	case map[string]any:
		for name, member := range value {
			if property := schema.Properties[name]; property != nil {
				inner, innerChanged := tidy(property.Value, member)
				value[name], changed = inner, changed || innerChanged
			}
		}
		return value, changed
	}
	return value, false
}

// addNUL finds the one character that JSON can write and Postgres cannot keep,
// in every string below value.
func (l *faultList) addNUL(value any, at []string) {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			l.add(pointerOf(at), "contains a NUL character, which cannot be kept")
		}
	case []any:
		for i, element := range value {
			if l.more {
				return
			}
			l.addNUL(element, append(at, strconv.Itoa(i)))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if l.more {
				return
			}
			l.addNUL(value[name], append(at, name))
		}
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
