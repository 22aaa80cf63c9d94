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
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/service"
)

// check compares r with the document and returns a problem with all faults.
// It fills in the defaults of missing parameters. Once it has passed, r has no
// parameter that the document does not know.
func (op *operation) check(r *http.Request) error {
	query, faults := parseQuery(r.URL)
	if len(faults) > 0 { // the rest would stumble over them
		return service.InvalidInput.New("", faults...)
	}
	faults = op.parameterFaults(r, query)
	var body []byte
	if op.body != nil && !(op.optional && r.ContentLength == 0) {
		var err error
		if body, err = op.readJSON(r); err != nil {
			return err
		}
		faults = append(faults, nulFaults(body)...)
		faults = append(faults, op.dependentFaults(body)...)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if op.upload != nil {
		if err := checkUpload(op.upload, r); err != nil {
			return err
		}
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: pathParams(r), Route: &op.Route, Options: op.options,
	})
	if faults = append(faults, op.formats.requestFaults(err)...); len(faults) > 0 {
		return service.InvalidInput.New("", firstOfEach(faults)...)
	}
	return nil
}

// firstOfEach keeps the first fault of each value, in the order of their names.
func firstOfEach(faults []service.FieldError) []service.FieldError {
	slices.SortStableFunc(faults, func(a, b service.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return slices.CompactFunc(faults, func(a, b service.FieldError) bool { return a.Pointer == b.Pointer })
}

func pathParams(r *http.Request) map[string]string {
	rc := chi.RouteContext(r.Context())
	params := make(map[string]string, len(rc.URLParams.Keys))
	for i, key := range rc.URLParams.Keys {
		params[key] = rc.URLParams.Values[i]
	}
	return params
}

// checkUpload refuses what content does not name, such as image/*. What a body
// really is, the handler has to find out.
func checkUpload(content openapi3.Content, r *http.Request) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || content.Get(mediaType) == nil {
		return service.UnsupportedMediaType.New("want " + strings.Join(slices.Sorted(maps.Keys(content)), " or "))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return service.UnsupportedMediaType.New("want the body as it is, without a Content-Encoding")
	}
	if r.ContentLength == 0 {
		return service.MalformedBody.New("the body is missing")
	}
	return nil
}

// readJSON returns r's body if it is one JSON value.
func (op *operation) readJSON(r *http.Request) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || op.Operation.RequestBody.Value.Content[mediaType] == nil {
		wanted := slices.Sorted(maps.Keys(op.Operation.RequestBody.Value.Content))
		return nil, service.UnsupportedMediaType.New("want " + strings.Join(wanted, " or "))
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, service.UnsupportedMediaType.New("want the charset UTF-8, or none")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, service.UnsupportedMediaType.New("want the body as it is, without a Content-Encoding")
	}
	body, err := io.ReadAll(r.Body)
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
	var value json.RawMessage
	if err := json.Unmarshal(body, &value); err != nil {
		detail := "not JSON"
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			detail = fmt.Sprintf("not JSON, or nested too deep, at byte %d", syntax.Offset)
		}
		return nil, service.MalformedBody.New(detail)
	}
	if hasLoneSurrogate(body) {
		return nil, service.MalformedBody.New(`half a character: an escape such as \ud83d needs its second half, such as \ude80`)
	}
	return body, nil
}

// hasLoneSurrogate reports whether body, which is JSON, escapes one half of a
// surrogate pair without the other (RFC 8259, 8.2). Go would replace it with
// U+FFFD, so that what is kept differs from what was sent.
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

// nulFaults finds the one character that JSON can write and Postgres cannot
// keep.
func nulFaults(body []byte) []service.FieldError {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return nil
	}
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil // readJSON has said so
	}
	var faults []service.FieldError
	eachString(value, "", func(pointer, s string) {
		if strings.ContainsRune(s, 0) {
			faults = append(faults, service.FieldError{Pointer: pointer, Detail: "contains a NUL character, which cannot be kept"})
		}
	})
	return faults
}

// eachString calls found for every string in value, names of members included.
func eachString(value any, pointer string, found func(pointer, s string)) {
	switch value := value.(type) {
	case string:
		found(pointer, value)
	case []any:
		for i, element := range value {
			eachString(element, fmt.Sprintf("%s/%d", pointer, i), found)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			eachString(value[name], pointer+"/"+escapePointer(name), found)
		}
	}
}

// dependentFaults checks the body's dependentRequired; see Document.plain.
func (op *operation) dependentFaults(body []byte) []service.FieldError {
	if len(op.body.DependentRequired) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil // no object, which the schema says too
	}
	var faults []service.FieldError
	for _, name := range slices.Sorted(maps.Keys(op.body.DependentRequired)) {
		for _, other := range op.body.DependentRequired[name] {
			if members[name] != nil && members[other] == nil {
				faults = append(faults, service.FieldError{Pointer: "/" + escapePointer(other), Detail: "missing beside " + name})
			}
		}
	}
	return faults
}
