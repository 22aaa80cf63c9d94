// Package openapi puts a service's OpenAPI document to work: the routes, the
// roles that may use them, and what a request may contain are read from it,
// so that it cannot say one thing and the service do another. A request that
// breaks the document is refused with its faults before a handler sees it.
package openapi

import (
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/oasdiff/yaml"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Document is an OpenAPI document at work.
type Document struct {
	spec *openapi3.T
	json []byte

	// plain is spec under an older version number. For 3.1, kin-openapi
	// compiles the schema again for every single request (330 µs for a report
	// against 10); its own validator knows all the keywords that our requests
	// use but dependentRequired, which operation.check adds. Load refuses a
	// document whose requests need more.
	plain *openapi3.T

	formats Formats
	options *openapi3filter.Options
}

// Load reads a document in YAML or JSON, whose strings may be of formats.
func Load(data []byte, formats Formats) (*Document, error) {
	encoded, err := yaml.YAMLToJSON(data) // spec would give large integers as floats
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	// Of the JSON: reading the YAML again would take a quarter of the time.
	spec, err := openapi3.NewLoader().LoadFromData(encoded)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	plain := *spec
	plain.OpenAPI = "3.0.3"
	d := &Document{spec: spec, json: encoded, plain: &plain, formats: formats.with()}
	d.options = d.formats.options()
	for op := range d.operations() {
		if err := op.plain(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// ServeHTTP answers with the document as JSON.
func (d *Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	service.WriteJSON(w, http.StatusOK, d.json)
}

// Version returns the version of the API that the document describes.
func (d *Document) Version() string { return d.spec.Info.Version }

// operations yields every operation of the document.
func (d *Document) operations() iter.Seq[*operation] {
	return func(yield func(*operation) bool) {
		for path, item := range d.spec.Paths.Map() {
			for method, op := range item.Operations() {
				if !yield(d.newOperation(routers.Route{
					Spec: d.plain, Path: path, PathItem: item, Method: method, Operation: op,
				})) {
					return
				}
			}
		}
	}
}

// An operation is one method of one path.
type operation struct {
	routers.Route
	parameters []*openapi3.Parameter // those of the path included
	body       *openapi3.Schema      // of the JSON body; nil if there is none
	upload     openapi3.Content      // what other body there is, which is the handler's to read; or nil
	optional   bool                  // the body may be left out
	formats    Formats
	options    *openapi3filter.Options
}

func (d *Document) newOperation(route routers.Route) *operation {
	op := &operation{Route: route, formats: d.formats, options: d.options}
	for _, refs := range []openapi3.Parameters{route.PathItem.Parameters, route.Operation.Parameters} {
		for _, ref := range refs {
			op.parameters = append(op.parameters, ref.Value)
		}
	}
	ref := route.Operation.RequestBody
	switch {
	case ref == nil:
	case ref.Value.Content["application/json"] == nil:
		op.upload = ref.Value.Content
	default:
		op.body = ref.Value.Content["application/json"].Schema.Value
		op.optional = !ref.Value.Required
	}
	return op
}

// public reports whether the operation needs no sign-in: its security
// requirements, or else the document's, allow for none.
func (op *operation) public() bool {
	requirements := op.Spec.Security
	if own := op.Operation.Security; own != nil {
		requirements = *own
	}
	return len(requirements) == 0 || slices.ContainsFunc(requirements, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
}

// roles returns the roles that may use the operation; none means all but connections. A
// public one is everybody's, and of connections only if it names them.
func (op *operation) roles() []auth.Role {
	names, _ := op.Operation.Extensions["x-roles"].([]any)
	roles := make([]auth.Role, len(names))
	for i, name := range names {
		roles[i] = auth.Role(fmt.Sprint(name))
	}
	return roles
}
