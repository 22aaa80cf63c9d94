package openapi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/cityconnect/cityconnect/platform/service"
)

// requestFaults lists every fault that openapi3filter found.
func (f Formats) requestFaults(err error) []service.FieldError {
	switch e := err.(type) { //nolint:errorlint // takes the tree of errors apart, node by node
	case nil:
		return nil
	case openapi3.MultiError:
		var faults []service.FieldError
		for _, inner := range e {
			faults = append(faults, f.requestFaults(inner)...)
		}
		return faults
	case *openapi3filter.RequestError:
		if e.Parameter != nil {
			return []service.FieldError{{Pointer: e.Parameter.Name, Detail: f.describeParameter(e)}}
		}
		return f.requestFaults(e.Err)
	case *openapi3.SchemaError:
		return []service.FieldError{{Pointer: pointerOf(e), Detail: f.describe(e)}}
	}
	return []service.FieldError{{Detail: "not what the document asks for"}}
}

// describeParameter tells what is wrong with a parameter: the first fault
// will do, since a parameter is a single value or a short list.
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
	return "want " + typeName(schema)
}

// describe words a fault for people, without showing the value: they know it.
func (f Formats) describe(e *openapi3.SchemaError) string {
	schema := e.Schema
	if wanted, ok := schema.Extensions["x-wanted"].(string); ok && e.SchemaField == "pattern" {
		return "want " + wanted
	}
	switch e.SchemaField {
	case "required":
		return "missing"
	case "properties":
		return "unknown field"
	case "minLength":
		return fmt.Sprintf("want at least %d characters", schema.MinLength)
	case "maxLength":
		return fmt.Sprintf("want at most %d characters", *schema.MaxLength)
	case "minimum":
		return fmt.Sprintf("want at least %v", *schema.Min)
	case "maximum":
		return fmt.Sprintf("want at most %v", *schema.Max)
	case "enum":
		return "want one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(schema.Enum), " ", ", "), "[]")
	case "type":
		return "want " + typeName(schema)
	case "format":
		return f.describeFormat(e)
	}
	return e.Reason
}

func (f Formats) describeFormat(e *openapi3.SchemaError) string {
	value, isString := e.Value.(string)
	if check, ok := f[e.Schema.Format]; ok && isString {
		return check(value).Error()
	}
	return "want a value of the form " + e.Schema.Format
}

// typeName names what schema takes, with an article.
func typeName(schema *openapi3.Schema) string {
	name := strings.Join(schema.Type.Slice(), " or ")
	if strings.HasPrefix(name, "a") || strings.HasPrefix(name, "i") || strings.HasPrefix(name, "o") {
		return "an " + name
	}
	return "a " + name
}

// pointerOf returns the JSON pointer (RFC 6901) of the value at fault. An
// unknown member is named only by the reason, and blamed on its object.
func pointerOf(e *openapi3.SchemaError) string {
	tokens := e.JSONPointer()
	var unknown string
	if _, err := fmt.Sscanf(e.Reason, "property %q is unsupported", &unknown); err == nil {
		tokens = append(tokens, unknown)
	}
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteString("/" + escapePointer(token))
	}
	return pointer.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscapes.Replace(token) }
