// Package openapitest holds the answers of a service to its OpenAPI document,
// in tests.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/oasdiff/yaml"
)

// A Document is what the answers are held to. Every object in it is closed:
// an answer that says more than the document is a fault.
type Document struct {
	path   string
	spec   func() (*openapi3.T, error)
	router func() (routers.Router, error)
}

// New returns the document at path, which is read once, when it is needed.
func New(path string) *Document {
	spec := sync.OnceValues(func() (*openapi3.T, error) {
		spec, err := openapi3.NewLoader().LoadFromFile(path)
		if err != nil {
			return nil, err
		}
		spec.Servers = nil // the router would look for their hosts
		for _, ref := range spec.Components.Schemas {
			if len(ref.Value.Properties) > 0 {
				ref.Value.AdditionalProperties = openapi3.BoolSchema{Has: new(false)}
			}
		}
		return spec, nil
	})
	return &Document{path, spec, sync.OnceValues(func() (routers.Router, error) {
		spec, err := spec()
		if err != nil {
			return nil, err
		}
		return legacy.NewRouter(spec)
	})}
}

// Check compares an answer, whose body was read already, with the document. A
// request that the document does not know must have been answered with 404 or
// 405.
func (d *Document) Check(t testing.TB, req *http.Request, res *http.Response, body []byte) {
	t.Helper()
	router, err := d.router()
	if err != nil {
		t.Fatalf("%s: %v", d.path, err)
	}
	asked := req
	if req.Method == http.MethodHead { // answered as GET is, without the body
		asked = req.Clone(req.Context())
		asked.Method = http.MethodGet
	}
	route, params, err := router.FindRoute(asked)
	if err != nil {
		if res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s is not in %s (%v), and is answered with %d", req.Method, req.URL.Path, d.path, err, res.StatusCode)
		}
		return
	}
	// The validator reads CSV without a byte order mark and with commas alone, and no XML.
	noBody := req.Method == http.MethodHead || strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-ndjson") ||
		strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") || strings.HasPrefix(res.Header.Get("Content-Type"), "image/") ||
		strings.HasPrefix(res.Header.Get("Content-Type"), "application/atom+xml")
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 res.StatusCode,
		Header:                 res.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: noBody},
	})
	if err != nil {
		t.Errorf("%s %s: the answer breaks %s: %v\n%s", req.Method, req.URL.Path, d.path, err, body)
	}
}

// CheckBody compares a body that was kept with what the document answers to GET on a
// path such as /reports/{id}. It reports whether the document has that path.
func (d *Document) CheckBody(t testing.TB, path string, body []byte) bool {
	t.Helper()
	spec, err := d.spec()
	if err != nil {
		t.Fatalf("%s: %v", d.path, err)
	}
	item := spec.Paths.Value(path)
	if item == nil || item.Get == nil {
		return false
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	for kind, media := range item.Get.Responses.Status(http.StatusOK).Value.Content {
		if strings.HasSuffix(kind, "json") {
			if err := media.Schema.Value.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.MultiErrors()); err != nil {
				t.Errorf("GET %s: the answer breaks %s: %v", path, d.path, err)
			}
		}
	}
	return true
}

// CheckServed makes sure that served, the body of GET /openapi.json, is valid
// and says all that the document says.
func (d *Document) CheckServed(t testing.TB, served []byte) {
	t.Helper()
	got, err := openapi3.NewLoader().LoadFromData(served)
	if err != nil {
		t.Fatalf("the served document: %v", err)
	}
	if err := got.Validate(t.Context()); err != nil {
		t.Errorf("the served document is not valid: %v", err)
	}
	want, err := openapi3.NewLoader().LoadFromFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	if got.OpenAPI != want.OpenAPI || got.Paths.Len() != want.Paths.Len() || len(got.Components.Schemas) != len(want.Components.Schemas) {
		t.Errorf("served is version %s with %d paths and %d schemas; want %s with %d and %d", got.OpenAPI,
			got.Paths.Len(), len(got.Components.Schemas), want.OpenAPI, want.Paths.Len(), len(want.Components.Schemas))
	}
}

// CheckRules holds each operation of the document to the rules of governments for an
// API: it says which version answers, and whether that may be kept; it says that
// a request can be wrong; it changes things by merge patches (RFC 7396), describes
// errors by problem details (RFC 9457), and how large a number may be. Generators of
// clients need names that differ.
func (d *Document) CheckRules(t testing.TB) {
	t.Helper()
	spec, err := openapi3.NewLoader().LoadFromFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			takes := len(item.Parameters)+len(op.Parameters) > 0 || op.RequestBody != nil
			if takes && op.Responses.Value("400") == nil {
				t.Errorf("%s takes parameters or a body, and has no 400", name)
			}
			if method == http.MethodPatch && (op.RequestBody == nil || op.RequestBody.Value.Content["application/merge-patch+json"] == nil) {
				t.Errorf("%s takes no application/merge-patch+json", name)
			}
			for status, answer := range op.Responses.Map() {
				for _, fault := range faultsOf(path, status, answer.Value) {
					t.Errorf("%s, %s: %s", name, status, fault)
				}
			}
		}
	}
	for scheme := range spec.Components.SecuritySchemes {
		for schema := range spec.Components.Schemas {
			if strings.EqualFold(scheme, schema) {
				t.Errorf("%s is a security scheme and a schema: generators of clients name both alike", scheme)
			}
		}
	}

	text, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := yaml.YAMLToJSON(text)
	var all any
	if err := errors.Join(err, json.Unmarshal(encoded, &all)); err != nil {
		t.Fatal(err)
	}
	for _, place := range withoutFormat("#", all) {
		t.Errorf("%s is a number without a format", place)
	}
}

// faultsOf returns the faults of an answer. Health is said in the same words whether
// or not the service is ready; and a client that has a picture already is sent nothing.
func faultsOf(path, status string, answer *openapi3.Response) (faults []string) {
	switch {
	case strings.HasPrefix(status, "2"):
		if answer.Headers["API-Version"] == nil {
			faults = append(faults, "has no header API-Version")
		}
		if len(answer.Content) > 0 && answer.Headers["Cache-Control"] == nil {
			faults = append(faults, "has no header Cache-Control")
		}
	case status == "304", status == "503" && (path == "/readyz" || path == "/health"):
	case len(answer.Content) != 1 || answer.Content["application/problem+json"] == nil:
		faults = append(faults, "is not application/problem+json alone")
	}
	return faults
}

// withoutFormat returns the places below value of schemas that are numbers of any
// size.
func withoutFormat(at string, value any) (places []string) {
	switch value := value.(type) {
	case map[string]any:
		kinds := fmt.Sprint(value["type"]) // a name or a list of them; in properties a schema
		_, named := value["type"].(map[string]any)
		if !named && value["format"] == nil && (strings.Contains(kinds, "integer") || strings.Contains(kinds, "number")) {
			places = append(places, at)
		}
		for name, inner := range value {
			places = append(places, withoutFormat(at+"/"+name, inner)...)
		}
	case []any:
		for i, inner := range value {
			places = append(places, withoutFormat(fmt.Sprint(at, "/", i), inner)...)
		}
	}
	return places
}
