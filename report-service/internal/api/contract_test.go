package api_test

import (
	"bytes"
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

// source is the document that everything else is made from.
const source = "../../../docs/openapi/report-service.yaml"

// contract is the document, with every object closed: an answer that tells
// more than it says is a fault.
var contract = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(source)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // the router would look for the host of "/"
	for _, ref := range doc.Components.Schemas {
		if len(ref.Value.Properties) > 0 {
			closed := false
			ref.Value.AdditionalProperties = openapi3.BoolSchema{Has: &closed}
		}
	}
	return legacy.NewRouter(doc)
})

// checkAnswer compares an answer with the document.
func checkAnswer(t testing.TB, req *http.Request, res *http.Response, body []byte) {
	t.Helper()
	router, err := contract()
	if err != nil {
		t.Fatalf("the document: %v", err)
	}
	route, params, err := router.FindRoute(req)
	if err != nil {
		if res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed && req.Method != http.MethodHead {
			t.Errorf("%s %s: not in the document (%v), and answered %d", req.Method, req.URL.Path, err, res.StatusCode)
		}
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 res.StatusCode,
		Header:                 res.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		t.Errorf("%s %s: the answer breaks the document: %v\n%s", req.Method, req.URL.Path, err, body)
	}
}

func TestEmbeddedDocumentIsTheSource(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.yaml is not docs/openapi/report-service.yaml: run go generate ./internal/api")
	}
}

func TestServedDocumentIsWhole(t *testing.T) {
	t.Parallel()
	a := newServer(t).do(call{method: "GET", path: "/openapi.json"})
	served, err := openapi3.NewLoader().LoadFromData(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Validate(t.Context()); err != nil {
		t.Errorf("the served document is not valid: %v", err)
	}
	want, err := openapi3.NewLoader().LoadFromFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if served.OpenAPI != "3.1.0" || served.Paths.Len() != want.Paths.Len() || len(served.Components.Schemas) != len(want.Components.Schemas) {
		t.Errorf("served version %s with %d paths and %d schemas; want 3.1.0, %d and %d", served.OpenAPI,
			served.Paths.Len(), len(served.Components.Schemas), want.Paths.Len(), len(want.Components.Schemas))
	}
	if !strings.Contains(string(a.body), "dependentRequired") {
		t.Error("the served document lost dependentRequired")
	}
}
