package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	"github.com/cityconnect/cityconnect/platform/auth"
)

// openapiYAML is a copy of docs/openapi/report-service.yaml, which cannot be
// embedded from here; `go generate` makes it and a test compares the two.
//
//go:embed openapi.yaml
var openapiYAML []byte

// A document is the OpenAPI document at work.
type document struct {
	spec *openapi3.T
	json []byte

	// plain is spec under an older version number. For 3.1, kin-openapi
	// compiles the schema anew for every single request (330 µs for a report
	// against 10); its own validator knows all the keywords that our requests
	// use but dependentRequired, which operation.check adds. A test holds on
	// to that, and the answers are tested against the 3.1 original.
	plain *openapi3.T
}

func loadDocument() (*document, error) {
	spec, err := openapi3.NewLoader().LoadFromData(openapiYAML)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	plain := *spec
	plain.OpenAPI = "3.0.3"
	return &document{spec: spec, json: data, plain: &plain}, nil
}

// serve answers GET /openapi.json.
func (d *document) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(d.json) // a client that left is no fault of ours
}

// operations yields every operation of the document.
func (d *document) operations() iter.Seq[*operation] {
	return func(yield func(*operation) bool) {
		for path, item := range d.spec.Paths.Map() {
			for method, op := range item.Operations() {
				if !yield(newOperation(routers.Route{
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
	body *openapi3.Schema // of the JSON body; nil if there is none
}

func newOperation(route routers.Route) *operation {
	op := &operation{Route: route}
	if ref := route.Operation.RequestBody; ref != nil {
		op.body = ref.Value.Content["application/json"].Schema.Value
	}
	return op
}

// ID returns the operation's name.
func (op *operation) ID() string { return op.Operation.OperationID }

// Public reports whether the operation needs no sign-in: its security
// requirements, or else the document's, allow for none.
func (op *operation) Public() bool {
	requirements := op.Spec.Security
	if own := op.Operation.Security; own != nil {
		requirements = *own
	}
	for _, requirement := range requirements {
		if len(requirement) == 0 {
			return true
		}
	}
	return false
}

// Roles returns the roles that may use the operation; none means all.
func (op *operation) Roles() []auth.Role {
	names, _ := op.Operation.Extensions["x-roles"].([]any)
	roles := make([]auth.Role, len(names))
	for i, name := range names {
		roles[i] = auth.Role(fmt.Sprint(name))
	}
	return roles
}
