package openapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

const document = `
openapi: 3.1.0
info: {title: Things, version: 1.0.0}
security: [{bearer: []}]
paths:
  /things/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string, format: uuid}}
    post:
      operationId: change
      security: [{}]
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 1, default: 20}}
        - {name: even, in: query, schema: {type: string, format: even}}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              additionalProperties: false
              required: [name]
              properties:
                name: {type: string, maxLength: 3}
                from: {type: integer}
                to: {type: integer}
              dependentRequired: {from: [to]}
      responses: {'204': {description: done}}
    get:
      operationId: look
      x-roles: [official]
      responses: {'204': {description: done}}
components:
  securitySchemes: {bearer: {type: http, scheme: bearer}}
`

var formats = openapi.Formats{"even": func(s string) error {
	if len(s)%2 != 0 {
		return errors.New("want an even number of characters")
	}
	return nil
}}

func mount(t *testing.T, handlers openapi.Handlers) (http.Handler, error) {
	t.Helper()
	doc, err := openapi.Load([]byte(document), formats)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	return r, doc.Mount(r, handlers, service.Errors{Log: zerolog.Nop()})
}

// done answers with the limit that it saw.
func done(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Limit", r.URL.Query().Get("limit"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

const path = "/things/0198c0de-0000-7000-8000-000000000001"

func TestEveryFaultIsTold(t *testing.T) {
	t.Parallel()
	h, err := mount(t, openapi.Handlers{"change": done, "look": done})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target, body string
		want         []string // pointer: detail; none means that it passes
	}{
		{path + "?even=ab", `{"name":"äöü"}`, nil},
		{path, `{"name":"x","from":1,"to":2}`, nil},
		{path + "?limit=0&even=a", `{"name":"four","from":1,"more":true}`, []string{
			"/more: unknown field", "/name: want at most 3 characters", "/to: missing beside from",
			"even: want an even number of characters", "limit: want at least 1"}},
		{"/things/7", `{"from":"x"}`, []string{
			"/from: want an integer", "/name: missing", "/to: missing beside from",
			"id: want a UUID, such as 0198c0de-0000-7000-8000-000000000001"}},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.target, strings.NewReader(tt.body))
		req.Header.Set("Content-Type", "application/json")
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		if tt.want == nil {
			if res.Code != http.StatusNoContent || res.Header().Get("Limit") != "20" {
				t.Errorf("%s %s: status %d with limit %q, want 204 with the default", tt.target, tt.body, res.Code, res.Header().Get("Limit"))
			}
			continue
		}
		if got := faultsOf(t, res); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s: faults %q, want %q", tt.target, tt.body, got, tt.want)
		}
	}
}

func faultsOf(t *testing.T, res *httptest.ResponseRecorder) []string {
	t.Helper()
	var p service.Problem
	if err := json.Unmarshal(res.Body.Bytes(), &p); err != nil {
		t.Fatalf("status %d: %v", res.Code, err)
	}
	var faults []string
	for _, f := range p.Errors {
		faults = append(faults, f.Pointer+": "+f.Detail)
	}
	slices.Sort(faults)
	return faults
}

func TestRolesComeFromTheDocument(t *testing.T) {
	t.Parallel()
	h, err := mount(t, openapi.Handlers{"change": done, "look": done})
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[auth.Role]int{"": http.StatusUnauthorized, auth.Resident: http.StatusForbidden, auth.Official: http.StatusNoContent} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if role != "" {
			req = req.WithContext(auth.With(t.Context(), auth.Principal{ID: "x", Role: role}))
		}
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		if res.Code != want {
			t.Errorf("as %q: status %d, want %d", role, res.Code, want)
		}
	}
}

func TestMountWantsEveryHandler(t *testing.T) {
	t.Parallel()
	if _, err := mount(t, openapi.Handlers{"change": done}); err == nil || !strings.Contains(err.Error(), "look") {
		t.Errorf("Mount: error %v, want one that names look", err)
	}
}

// A keyword that requests are not checked for must not look as if it held.
func TestLoadRefusesWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	for old, replacement := range map[string]string{
		"maxLength: 3":                  "const: x",
		"minimum: 1, default: 20":       "const: 20",
		"name: {type: string, maxL":     "name: {dependentRequired: {a: [b]}, maxL",
		"dependentRequired: {from: [to": "if: {type: object}, x-rest: {from: [to",
	} {
		broken := strings.Replace(document, old, replacement, 1)
		if broken == document {
			t.Fatalf("%q is not in the document", old)
		}
		if _, err := openapi.Load([]byte(broken), formats); err == nil {
			t.Errorf("Load took %q", replacement)
		}
	}
}
