package openapi

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// parseQuery returns u's query, and adds to l its faults as text: characters that
// the database could not take.
func (l *faultList) parseQuery(u *url.URL) url.Values {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		l.add("query", "must be name=value&…, percent-encoded")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			if !utf8.ValidString(name+value) || strings.ContainsRune(name+value, 0) {
				l.add(strings.ToValidUTF8(name, "\uFFFD"), "must be UTF-8 text without NUL characters")
			}
		}
	}
	return query
}

// parameterFaults finds what openapi3filter lets pass: parameters that the
// document does not know, which would be ignored although the client meant
// something by them; a second value where there can be one, of which one would
// be checked and the other used; and numbers in another spelling than JSON's. It
// tidies the parameters in the query.
func (op *operation) parameterFaults(r *http.Request, query url.Values, faults *faultList) {
	var known []string
	tidied := false
	for _, p := range op.parameters {
		var values []string
		switch p.In {
		case openapi3.ParameterInQuery:
			known = append(known, p.Name)
			values = query[p.Name]
			for i, value := range values {
				if form, ok := tidyForms[p.Schema.Value.Format]; ok {
					values[i] = form(value)
					tidied = tidied || values[i] != value
				}
			}
		case openapi3.ParameterInHeader:
			values = r.Header.Values(p.Name)
			if len(values) > 1 && p.Extensions["x-list"] == true { // RFC 9110, 5.3
				values = []string{strings.Join(values, ", ")}
				r.Header.Set(p.Name, values[0])
			}
		case openapi3.ParameterInPath:
			values = []string{r.PathValue(p.Name)}
		}
		schema := p.Schema.Value
		switch {
		case schema.Items == nil && len(values) > 1:
			faults.add(p.Name, "given more than once, must be given once")
		case schema.Items != nil && schema.MaxItems != nil && uint64(len(values)) > *schema.MaxItems:
			// Here, since each element costs a kilobyte to describe when it is faulty.
			faults.add(p.Name, "must have at most "+count(*schema.MaxItems, "element"))
		}
		if schema.Items != nil {
			schema = schema.Items.Value
		}
		for _, value := range values {
			if detail := spelling(schema, value); detail != "" {
				faults.add(p.Name, detail)
			}
		}
	}
	if tidied { // the handler reads what was checked
		r.URL.RawQuery = query.Encode()
	}
	if op.Operation.Extensions["x-ignores-parameters"] == true { // clients of others add their own
		return
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !faults.more && !slices.Contains(known, name) {
			faults.add(name, "unknown parameter; known here: "+cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
}

var (
	integerPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	numberPattern  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// spelling returns the fault in the way in which value is written, if schema asks for
// a number or a boolean: other spellings would be read, too, but JSON does not have
// them.
func spelling(schema *openapi3.Schema, value string) string {
	switch {
	case schema.Type.Is("string"):
		return ""
	case value == "":
		return "empty"
	case schema.Type.Is("integer") && !integerPattern.MatchString(value):
		return "must be an integer in plain digits, such as 10"
	case schema.Type.Is("number") && !numberPattern.MatchString(value):
		return "must be a number, such as 1.5"
	case schema.Type.Is("boolean") && value != "true" && value != "false":
		return "must be true or false"
	}
	return ""
}
