package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
)

// maxFaults are listed in an answer. Authors of clients correct a few at a time; a
// body has room for tens of thousands.
const maxFaults = 20

// A faultList has the faults of a request, of each value the first that was found.
type faultList struct {
	faults []service.FieldError
	more   bool // there are more than maxFaults
}

func (l *faultList) add(pointer, detail string) {
	switch {
	case l.more || l.has(pointer):
	case len(l.faults) == maxFaults:
		l.more = true
	default:
		l.faults = append(l.faults, service.FieldError{Pointer: pointer, Detail: detail})
	}
}

// has reports whether the value at pointer has a fault that is listed.
func (l *faultList) has(pointer string) bool {
	return slices.ContainsFunc(l.faults, func(f service.FieldError) bool { return f.Pointer == pointer })
}

// problem returns nil if there are no faults, or else what to answer: the faults in
// the order of their names.
func (l *faultList) problem() error {
	if len(l.faults) == 0 {
		return nil
	}
	detail := ""
	if l.more {
		detail = fmt.Sprintf("there are more faults than the %d that are listed", maxFaults)
	}
	slices.SortFunc(l.faults, func(a, b service.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return service.InvalidInput.New(detail, l.faults...)
}

// addRequest adds to l what openapi3filter found.
func (f Formats) addRequest(l *faultList, err error) {
	switch e := err.(type) { //nolint:errorlint // takes the tree of errors apart, node by node
	case nil:
	case openapi3.MultiError:
		for _, inner := range e {
			if l.more {
				return
			}
			f.addRequest(l, inner)
		}
	case *openapi3filter.RequestError:
		if e.Parameter != nil {
			l.add(e.Parameter.Name, f.describeParameter(e))
			return
		}
		f.addRequest(l, e.Err)
	case *openapi3.SchemaError:
		l.add(pointerOf(e.JSONPointer()), f.describe(e))
	default:
		l.add("", "not what the document asks for")
	}
}

// describeParameter describes the fault of a parameter: the first one will do, since
// a parameter is a single value or a short list.
func (f Formats) describeParameter(e *openapi3filter.RequestError) string {
	if fault, ok := errors.AsType[*openapi3.SchemaError](e.Err); ok {
		return f.describe(fault)
	}
	switch {
	case errors.Is(e.Err, openapi3filter.ErrInvalidRequired):
		return "missing"
	case errors.Is(e.Err, openapi3filter.ErrInvalidEmptyValue):
		return "empty"
	}
	schema := e.Parameter.Schema.Value
	if schema.Items != nil {
		schema = schema.Items.Value
	}
	return "must be " + typeName(schema)
}

// describe words a fault for people, without showing the value: they know it.
func (f Formats) describe(e *openapi3.SchemaError) string {
	schema := e.Schema
	if must, ok := schema.Extensions["x-must"].(string); ok && e.SchemaField == "pattern" {
		return "must " + must
	}
	switch e.SchemaField {
	case "required":
		return "missing"
	case "minLength":
		if _, ok := tidyForms[schema.Format]; ok && schema.MinLength == 1 {
			return text.ErrBlank.Error()
		}
		return "must have at least " + count(schema.MinLength, "character")
	case "maxLength":
		return "must have at most " + count(*schema.MaxLength, "character")
	case "minItems":
		return "must have at least " + count(schema.MinItems, "element")
	case "maxItems":
		return "must have at most " + count(*schema.MaxItems, "element")
	case "uniqueItems":
		return "must have each element only once"
	case "minProperties":
		return "must have at least " + count(schema.MinProps, "field")
	case "maxProperties":
		return "must have at most " + count(*schema.MaxProps, "field")
	case "minimum":
		return "must be at least " + plainNumber(*schema.Min)
	case "maximum":
		return "must be at most " + plainNumber(*schema.Max)
	case "enum":
		return "must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(schema.Enum), " ", ", "), "[]")
	case "type":
		return "must be " + typeName(schema)
	case "nullable":
		return "must be " + typeName(schema) + ", not null"
	case "format":
		value, isString := e.Value.(string)
		if check, ok := f[schema.Format]; ok && isString {
			return check(value).Error()
		}
		return "must be a value of the form " + schema.Format
	case "pattern":
		if len(schema.Examples) > 0 {
			return fmt.Sprint("must be a value such as ", schema.Examples[0])
		}
	}
	return "not what the document asks for (" + e.SchemaField + ")"
}

// count returns "1 character", "2 characters" and so on.
func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// plainNumber writes n without an exponent.
func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// typeName names what schema takes, with an article.
func typeName(schema *openapi3.Schema) string {
	name := strings.Join(schema.Type.Slice(), " or ")
	if strings.HasPrefix(name, "a") || strings.HasPrefix(name, "i") || strings.HasPrefix(name, "o") {
		return "an " + name
	}
	return "a " + name
}

// pointerOf returns the JSON pointer (RFC 6901) that tokens make.
func pointerOf(tokens []string) string {
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteString("/" + escapePointer(token))
	}
	return pointer.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscapes.Replace(token) }
