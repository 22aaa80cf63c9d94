// Package openapitest holds the answers of a service to its OpenAPI document,
// in tests.
package openapitest

import (
	"bytes"
	"errors"
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
)

// A Document is what the answers are held to. Every object in it is closed:
// an answer that says more than the document is a fault.
type Document struct {
	path   string
	router func() (routers.Router, error)
}

// New returns the document at path, which is read once, when it is needed.
func New(path string) *Document {
	return &Document{path, sync.OnceValues(func() (routers.Router, error) {
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
	noBody := req.Method == http.MethodHead || strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-ndjson") ||
		strings.HasPrefix(res.Header.Get("Content-Type"), "image/")
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

// CheckCopy makes sure that the file at path, which the service embeds, is the
// document.
func (d *Document) CheckCopy(t testing.TB, path string) {
	t.Helper()
	want, err := os.ReadFile(d.path)
	got, err2 := os.ReadFile(path)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not %s: run go generate ./internal/api", path, d.path)
	}
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
