package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/cityconnect/cityconnect/platform/text"
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
        - {name: state, in: query, schema: {type: string, enum: [open, closed]}}
        - {name: since, in: query, schema: {type: string, format: date-time}}
        - {name: title, in: query, schema: {type: string, format: line}}
        - {name: unread, in: query, schema: {type: boolean}}
        - {name: tag, in: query, schema: {type: array, maxItems: 2, items: {type: integer}}}
        - {name: place, in: query, schema: {type: string, pattern: '^v1', examples: [v1.1]}}
        - {name: Once, in: header, schema: {type: string, minLength: 1}}
        - {name: Any, in: header, x-list: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: '#/components/schemas/Change'}}
          application/merge-patch+json: {schema: {$ref: '#/components/schemas/Change'}}
      responses: {'204': {description: done}}
    put:
      operationId: upload
      security: [{}]
      requestBody:
        required: true
        content: {image/*: {}}
      responses: {'204': {description: done}}
    get:
      operationId: look
      x-roles: [official]
      responses: {'204': {description: done}}
components:
  securitySchemes: {bearer: {type: http, scheme: bearer}}
  schemas:
    Change:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: {type: string, minLength: 1, maxLength: 3}
        title: {type: string, format: line}
        story: {type: string, format: text}
        shown: {type: string, format: line, minLength: 1}
        user: {type: string, format: id}
        tags: {type: array, minItems: 1, maxItems: 50, items: {type: integer, maximum: 999999999999999999}}
        from: {type: integer}
        to: {type: integer}
        size: {type: integer, default: 3}
      dependentRequired: {from: [to]}
`

var formats = openapi.Formats{"even": func(s string) error {
	if len(s)%2 != 0 {
		return errors.New("must have an even number of characters")
	}
	return nil
}}

func mount(t *testing.T, handlers map[string]service.HandlerFunc) (http.Handler, error) {
	t.Helper()
	operations := make(openapi.Operations, len(handlers))
	for id, h := range handlers {
		operations[id] = service.Operation{Handler: h, Timeout: service.DefaultTimeout}
	}
	doc, err := openapi.Load([]byte(document), formats)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	return r, doc.Mount(r, service.Errors{Log: zerolog.Nop()}, operations)
}

// done answers with the limit and the size that it saw.
func done(w http.ResponseWriter, r *http.Request) error {
	body, err := service.Decode[struct{ Size json.Number }](r)
	if err != nil {
		return err
	}
	w.Header().Set("Limit", r.URL.Query().Get("limit"))
	w.Header().Set("Size", body.Size.String())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

const wantTime = "must be a time with its zone as in RFC 3339, such as 2026-11-22T08:00:00Z or 2026-11-22T15:00:00+07:00, whose + is %2B in a URL"

const path = "/things/0198c0de-0000-7000-8000-000000000001"

func TestFaultsAreTold(t *testing.T) {
	t.Parallel()
	h, err := mount(t, map[string]service.HandlerFunc{"change": done, "look": done, "upload": done})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target, body string
		want         []string // pointer: detail; none means that it passes
	}{
		{path + "?even=ab", `{"name":"äöü"}`, nil},
		{path, `{"name":"x","from":1,"to":2}`, nil},
		{path, `{"name":"x","from":null}`, []string{"/from: must be an integer, not null", "/to: missing beside from"}},
		{path + "?limit=0&even=a", `{"name":"four","from":1,"more":true}`, []string{
			"/more: unknown field", "/name: must have at most 3 characters", "/to: missing beside from",
			"even: must have an even number of characters", "limit: must be at least 1"}},
		{path + "?evn=ab&z=1", `{"name":"x"}`, []string{
			"evn: unknown parameter; known here: limit, even, state, since, title, unread, tag, place", "z: unknown parameter; known here: limit, even, state, since, title, unread, tag, place"}},
		{path + "?limit&limit=2", `{"name":"x"}`, []string{"limit: given more than once, must be given once"}},
		{path + "?state=&state=open", `{"name":"x"}`, []string{"state: given more than once, must be given once"}},
		{path + "?limit=", `{"name":"x"}`, []string{"limit: empty"}},
		{path + "?tag=&tag=1", `{"name":"x"}`, []string{"tag: empty"}},
		{path + "?tag=1&tag=2", `{"name":"x"}`, nil},
		{path + "?limit=01&unread=TRUE", `{"name":"x"}`, []string{"limit: must be an integer in plain digits, such as 10", "unread: must be true or false"}},
		{path + "?limit=%2B1&unread=1", `{"name":"x"}`, []string{"limit: must be an integer in plain digits, such as 10", "unread: must be true or false"}},
		{path + "?limit=20&unread=true", `{"name":"x"}`, nil},
		{path + "?since=2026-02-28T23:59:59.5Z", `{"name":"x"}`, nil},
		{path + "?since=2026-02-30T00:00:00Z", `{"name":"x"}`, []string{"since: " + wantTime}},
		{path + "?place=v2", `{"name":"x"}`, []string{"place: must be a value such as v1.1"}},
		{path + "?tag=1&tag=2&tag=3", `{"name":""}`, []string{"/name: must have at least 1 character", "tag: must have at most 2 elements"}},
		{path, `{"name":null,"tags":[]}`, []string{"/name: must be a string, not null", "/tags: must have at least 1 element"}},
		{path, `{"name":"x","title":"\u202Eab","story":"a\u001b[31m\u000bb"}`, nil},
		{path, `{"name":"x","title":"\u0000","story":"\u0000"}`, []string{"/story: " + text.ErrNUL.Error(), "/title: " + text.ErrNUL.Error()}},
		{path, `{"name":"x","shown":"\u200b\ufe0f"}`, []string{"/shown: " + text.ErrBlank.Error()}},
		{path, `{"name":"x","user":"a\u202eb"}`, []string{"/user: " + text.ErrDirection.Error()}},
		{path, `{"name":"x","story":"1","na\u006de":"y","tags":[1],"size":3,"size":4}`, []string{"/name: given more than once", "/size: given more than once"}},
		{path, `{"name":"x","tags":[{"a":1,"a":2}]}`, []string{"/tags/0/a: given more than once", "/tags/0: must be an integer"}},
		{path, `{"name":"x","title":"a: \"b\": \\","name":"y"}`, []string{"/name: given more than once"}},
		{path, `{"name":"x","title":"a: \"b\": \\","story":":\u0022:"}`, nil},
		{path + "?since=2026-11-22T08:00:00+07:00", `{"name":"x"}`, nil},
		{path + "?since=2026-11-22t08:00:00.5z", `{"name":"x"}`, nil},
		{path + "?since=2026-11-22%2008:00:00-07:00%20", `{"name":"x"}`, nil},
		{path + "?since=2026-11-22T08:00:00%2B0700", `{"name":"x"}`, nil},
		{path + "?since=2026-11-22T08:00:00", `{"name":"x"}`, []string{"since: " + wantTime}},
		{path + "?since=2026-11-22", `{"name":"x"}`, []string{"since: " + wantTime}},
		{path, `{"name":"x","title":"\ud83d\ude80 up","story":""}`, nil},
		{"/things/7", `{"from":"x"}`, []string{
			"/from: must be an integer", "/name: missing", "/to: missing beside from",
			"id: must be a UUID, such as 0198c0de-0000-7000-8000-000000000001"}},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.target, strings.NewReader(tt.body))
		req.Header.Set("Content-Type", "application/json")
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		if tt.want == nil {
			if limit, size := res.Header().Get("Limit"), res.Header().Get("Size"); res.Code != http.StatusNoContent || limit != "20" || size != "3" {
				t.Errorf("%s %s: status %d with limit %q and size %q, want 204 with the defaults", tt.target, tt.body, res.Code, limit, size)
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

// An answer lists 20 faults and says that there are more; which ones, does not
// change from one answer to the next.
func TestFaultsAreCut(t *testing.T) {
	t.Parallel()
	h, err := mount(t, map[string]service.HandlerFunc{"change": done, "look": done, "upload": done})
	if err != nil {
		t.Fatal(err)
	}
	var twenty []string
	for i := range 20 {
		twenty = append(twenty, fmt.Sprintf("%q:0", fmt.Sprint("k", 10+i)))
	}
	for _, tt := range []struct {
		query, body string
		more        bool
	}{
		{"", `{"name":"x",` + strings.Join(twenty, ",") + `}`, false},
		{"", `{"name":"x","k30":0,` + strings.Join(twenty, ",") + `}`, true},
		{"", `{"name":"x","tags":[` + strings.Repeat(`"",`, 30) + `""]}`, true},
		{"", `{"name":"x","tags":{"` + strings.Repeat(`a":0,"`, 30) + `a":["\u0000"]},"story":` + strings.Repeat("[", 99) + `"\u0000"` + strings.Repeat("]", 99) + `,` + strings.Join(twenty[3:], ",") + `}`, false},
		{"?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u", `{"name":"x"}`, true},
	} {
		var first string
		for range 3 {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path+tt.query, strings.NewReader(tt.body))
			req.Header.Set("Content-Type", "application/json")
			res := httptest.NewRecorder()
			h.ServeHTTP(res, req)
			var p service.Problem
			if err := json.Unmarshal(res.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if more := strings.Contains(p.Detail, "more faults than the 20"); len(p.Errors) != 20 || more != tt.more {
				t.Errorf("%.60s%.60s: %d faults, detail %q; want 20, more %t", tt.query, tt.body, len(p.Errors), p.Detail, tt.more)
			}
			if first == "" {
				first = res.Body.String()
			}
			if first != res.Body.String() {
				t.Errorf("%.60s%.60s: answered %s, then %s", tt.query, tt.body, first, res.Body)
			}
		}
	}
}

// The handler reads strings in the form that was checked.
func TestHandlerReadsTidied(t *testing.T) {
	t.Parallel()
	var body, since, title string
	change := func(w http.ResponseWriter, r *http.Request) error {
		read, err := io.ReadAll(r.Body)
		body, since, title = string(read), r.URL.Query().Get("since"), r.URL.Query().Get("title")
		w.WriteHeader(http.StatusNoContent)
		return err
	}
	h, err := mount(t, map[string]service.HandlerFunc{"change": change, "look": done, "upload": done})
	if err != nil {
		t.Fatal(err)
	}
	sent := `{"name":" ","title":" a\u202eb\u0009c ","story":"a\r\nb\u000b\u202ac\u202c","tags":[900000000000000001],"size":0}`
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path+"?since=2026-11-22t08:00:00+07:00&title=%E2%80%8Bx%0A", strings.NewReader(sent))
	req.Header.Set("Content-Type", "application/json")
	res := httptest.NewRecorder()
	h.ServeHTTP(res, req)
	const want = `{"name":" ","size":0,"story":"a\nb\n` + "\u202ac\u202c" + `","tags":[900000000000000001],"title":"ab c"}`
	if res.Code != http.StatusNoContent || body != want || since != "2026-11-22T08:00:00+07:00" || title != "x" {
		t.Errorf("status %d, the handler reads %s and since %q, title %q; want %s", res.Code, body, since, title, want)
	}
}

// A fault of the body as a whole, or of the headers, has one answer.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h, err := mount(t, map[string]service.HandlerFunc{"change": done, "look": done, "upload": done})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, body string
		header     http.Header
		status     int
		detail     string // of the problem, or of its one fault
	}{
		{"good", `{"name":"x"}`, nil, 204, ""},
		{"with a byte order mark", "\uFEFF" + `{"name":"x"}`, nil, 204, ""},
		{"two byte order marks", "\uFEFF\uFEFF" + `{"name":"x"}`, nil, 400, "not JSON"},
		{"in UTF-16", "\xff\xfe{\x00}\x00", nil, 400, "not UTF-8"},
		{"a byte order mark alone", "\uFEFF", nil, 400, "missing"},
		{"with a charset as others write it", `{"name":"x"}`, http.Header{"Content-Type": {"application/json; charset=utf8"}}, 204, ""},
		{"with a charset", `{"name":"x"}`, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, 204, ""},
		{"no JSON", `{"name":x}`, nil, 400, "not JSON, or nested too deep, at byte 9"},
		{"cut off", `{"name":`, nil, 400, "not JSON, or nested too deep, at byte 8"},
		{"two values", `{"name":"x"} {}`, nil, 400, "not JSON, or nested too deep, at byte 14"},
		{"too deep", strings.Repeat("[", 11000), nil, 400, "not JSON, or nested too deep, at byte 10001"},
		{"first half alone", `{"name":"\ud83d"}`, nil, 400, "half a character"},
		{"second half alone", `{"name":"\\\uDE80"}`, nil, 400, "half a character"},
		{"halves apart", `{"name":"\ud83dx\ude80"}`, nil, 400, "half a character"},
		{"no half", `{"name":"\\ud"}`, nil, 204, ""},
		{"another type", `{"name":"x"}`, http.Header{"Content-Type": {"text/plain"}}, 415, "the body must be application/json or application/merge-patch+json"},
		{"a merge patch", `{"name":"x"}`, http.Header{"Content-Type": {"application/merge-patch+json"}}, 204, ""},
		{"a wrong merge patch", `{"name":"four"}`, http.Header{"Content-Type": {"application/merge-patch+json"}}, 400, "must have at most 3 characters"},
		{"compressed", `{"name":"x"}`, http.Header{"Content-Encoding": {"gzip"}}, 415, "without a Content-Encoding"},
		{"identity", `{"name":"x"}`, http.Header{"Content-Encoding": {"identity"}}, 204, ""},
		{"a header twice", `{"name":"x"}`, http.Header{"Once": {"a", "b"}}, 400, "given more than once, must be given once"},
		{"a list in two headers", `{"name":"x"}`, http.Header{"Any": {"a", "b"}}, 204, ""},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(tt.body))
		req.Header.Set("Content-Type", "application/json")
		maps.Copy(req.Header, tt.header)
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		var p service.Problem
		if res.Code >= 400 {
			if err := json.Unmarshal(res.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			for _, fault := range p.Errors {
				p.Detail += fault.Detail
			}
		}
		if res.Code != tt.status || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s: status %d with %q, want %d with %q", tt.name, res.Code, p.Detail, tt.status, tt.detail)
		}
	}
}

// An upload is left to the handler, to the last byte: who reads it before has it in
// memory, and takes it as fast as it comes.
func TestUploadIsLeftUnread(t *testing.T) {
	t.Parallel()
	body := strings.NewReader("a picture")
	read := func(w http.ResponseWriter, r *http.Request) error {
		if body.Len() != len("a picture") {
			t.Errorf("%d bytes are left for the handler", body.Len())
		}
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != "a picture" {
			t.Errorf("the handler reads %q, error %v", got, err)
		}
		return nil
	}
	h, err := mount(t, map[string]service.HandlerFunc{"change": done, "look": done, "upload": read})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPut, path, io.NopCloser(body))
	req.Header.Set("Content-Type", "image/jpeg")
	req.ContentLength = int64(body.Len())
	res := httptest.NewRecorder()
	h.ServeHTTP(res, req)
	if res.Code != http.StatusOK {
		t.Errorf("status %d with %s, want 200", res.Code, res.Body)
	}
}

// A limit above 2⁵³ is served as it is written.
func TestServedDocumentIsExact(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Load([]byte(document), formats)
	if err != nil {
		t.Fatal(err)
	}
	res := httptest.NewRecorder()
	doc.ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil))
	if !strings.Contains(res.Body.String(), `"maximum":999999999999999999`) {
		t.Errorf("the maximum is not what the document says: %s", res.Body)
	}
}

func TestRolesComeFromTheDocument(t *testing.T) {
	t.Parallel()
	h, err := mount(t, map[string]service.HandlerFunc{"change": done, "look": done, "upload": done})
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

// An operation without a handler, or without a timeout, is noticed at start.
func TestMountRefusesIncompleteOperations(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Load([]byte(document), formats)
	if err != nil {
		t.Fatal(err)
	}
	whole := service.Operation{Handler: done, Timeout: service.Unlimited}
	for want, part := range map[string]openapi.Operations{
		"operation look has no handler":     {"look": {Timeout: service.DefaultTimeout}},
		"operation look has no timeout":     {"look": {Handler: done}},
		"operation change has two handlers": {"look": whole, "change": whole},
	} {
		err := doc.Mount(chi.NewRouter(), service.Errors{}, openapi.Operations{"change": whole, "upload": whole}, part)
		if err == nil || err.Error() != want {
			t.Errorf("Mount: error %v, want %q", err, want)
		}
	}
	if _, err := mount(t, map[string]service.HandlerFunc{"change": done, "upload": done}); err == nil || !strings.Contains(err.Error(), "look") {
		t.Errorf("Mount: error %v, want one that names look", err)
	}
}

// A keyword that requests are not checked for must not look as if it held.
func TestLoadRefusesWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	for old, replacement := range map[string]string{
		"maxLength: 3}":                 "const: x}",
		"minimum: 1, default: 20":       "const: 20",
		"name: {type: string, minL":     "name: {dependentRequired: {a: [b]}, minL",
		"dependentRequired: {from: [to": "if: {type: object}, x-rest: {from: [to",
		"minItems: 1, maxItems: 50":     "minItems: 1",
		"from: {type: integer}":         "from: {}",
		"to: {type: integer}":           "to: {oneOf: [{type: integer}]}",
		"story: {type: string":          "story: {additionalProperties: {type: string}",
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
