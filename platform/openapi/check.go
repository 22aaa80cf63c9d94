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
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/service"
)

// check compares r with the document and returns a problem with all faults.
// It fills in the defaults of missing parameters.
func (op *operation) check(r *http.Request) error {
	faults := textFaults(r.URL)
	if len(faults) > 0 { // the rest would stumble over them
		return service.InvalidInput.New("", faults...)
	}
	var body []byte
	if op.body != nil && !(op.optional && r.ContentLength == 0) {
		var err error
		if body, err = readJSON(r); err != nil {
			return err
		}
		faults = append(nulFaults(body), op.dependentFaults(body)...)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: pathParams(r), Route: &op.Route, Options: op.options,
	})
	if faults = append(op.formats.requestFaults(err), faults...); len(faults) > 0 {
		return service.InvalidInput.New("", faults...)
	}
	return nil
}

func pathParams(r *http.Request) map[string]string {
	rc := chi.RouteContext(r.Context())
	params := make(map[string]string, len(rc.URLParams.Keys))
	for i, key := range rc.URLParams.Keys {
		params[key] = rc.URLParams.Values[i]
	}
	return params
}

// textFaults finds what the database could not take for text.
func textFaults(u *url.URL) []service.FieldError {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return []service.FieldError{{Pointer: "query", Detail: "not of the form name=value&…"}}
	}
	var faults []service.FieldError
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if !utf8.ValidString(name+value) || strings.ContainsRune(name+value, 0) {
				faults = append(faults, service.FieldError{
					Pointer: strings.ToValidUTF8(name, "�"), Detail: "want UTF-8 text without NUL characters"})
			}
		}
	}
	return faults
}

// readJSON returns r's body if it is one JSON value.
func readJSON(r *http.Request) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return nil, service.UnsupportedMediaType.New("want application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, service.UnsupportedMediaType.New("want the charset UTF-8, or none")
	}
	body, err := io.ReadAll(r.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, err
	}
	switch {
	case err != nil:
		return nil, service.MalformedBody.New("the body ended early")
	case len(body) == 0:
		return nil, service.MalformedBody.New("the body is missing")
	case !utf8.Valid(body):
		return nil, service.MalformedBody.New("the body is not UTF-8")
	}
	var value json.RawMessage
	if err := json.Unmarshal(body, &value); err != nil {
		return nil, service.MalformedBody.New(err.Error())
	}
	return body, nil
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
