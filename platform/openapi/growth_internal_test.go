package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

const (
	// largestBody and largestQuery are what the services take, see package service.
	largestBody, largestQuery = 64 << 10, 32 << 10
	// perByte is how much may be allocated for each byte of a request, all told.
	perByte = 250
	// besides is what a small request needs.
	besides = 256 << 10
)

// A request costs no more than its size allows for, whatever is in it. The check
// comes before any limit per user.
func TestWorkIsBoundedBySize(t *testing.T) { // not parallel: it counts the process's allocations
	for _, name := range []string{"report-service", "notification-service"} {
		source, err := os.ReadFile("../../docs/openapi/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Load(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		bodies, tried := 0, make(map[string]bool)
		for op := range doc.operations() {
			for class, query := range queries(op, largestQuery, tried) {
				allocates(t, op, fmt.Sprintf("%d bytes, %s", len(query), class), query, "")
			}
			if op.body == nil {
				continue
			}
			bodies++
			// Growth shows with the small ones, too, and takes no gigabytes.
			for _, size := range []int{4 << 10, largestBody} {
				for class, body := range stuffed(op.body, size, tried) {
					if !json.Valid([]byte(body)) || len(body) > size || len(body) < size/3 {
						t.Fatalf("%s: the test makes %d bytes of no use: %.200s", class, len(body), body)
					}
					allocates(t, op, fmt.Sprintf("%d bytes, %s", len(body), class), "", body)
				}
				if t.Failed() {
					break
				}
			}
		}
		if bodies < 20 {
			t.Errorf("%s: %d operations take a body: the test reads the document wrongly", name, bodies)
		}
	}
}

// allocates makes op check a request and looks at what that allocates and what is
// answered.
func allocates(t *testing.T, op *operation, class, query, body string) {
	t.Helper()
	h := op.handler(func(http.ResponseWriter, *http.Request) error { return nil }, service.Errors{Log: zerolog.Nop()})
	role := auth.Resident
	if roles := op.roles(); len(roles) > 0 {
		role = roles[0]
	}
	ctx := context.WithValue(t.Context(), chi.RouteCtxKey, chi.NewRouteContext())
	ctx = auth.With(ctx, auth.Principal{ID: "x", Role: role})
	req := httptest.NewRequestWithContext(ctx, op.Method, "/", strings.NewReader(body))
	req.URL.RawQuery = query
	req.Header.Set("Content-Type", "application/json")
	res := httptest.NewRecorder()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ServeHTTP(res, req)
	runtime.ReadMemStats(&after)

	got := after.TotalAlloc - before.TotalAlloc
	if limit := uint64(besides + perByte*(len(query)+len(body))); got > limit {
		t.Errorf("%s, %s: allocates %d kB, limit %d kB", op.Operation.OperationID, class, got>>10, limit>>10)
	}
	var problem service.Problem
	if res.Code != http.StatusOK {
		if err := json.Unmarshal(res.Body.Bytes(), &problem); err != nil {
			t.Fatalf("%s, %s: %v", op.Operation.OperationID, class, err)
		}
	}
	if len(problem.Errors) > maxFaults {
		t.Errorf("%s, %s: the answer has %d faults", op.Operation.OperationID, class, len(problem.Errors))
	}
}

// queries returns queries of about size bytes that may cost more than others. Tried
// has the parameters that were in others, and need not be again.
func queries(op *operation, size int, tried map[string]bool) map[string]string {
	classes := map[string]string{
		"unknown parameters": filled(size, func(i int) string { return fmt.Sprintf("k%d&", i) }),
		"not UTF-8":          filled(size, func(i int) string { return fmt.Sprintf("k%d=%%ff&", i) }),
	}
	for _, p := range op.parameters {
		if p.In == openapi3.ParameterInQuery && !tried["?"+p.Name] {
			tried["?"+p.Name] = true
			classes[p.Name+" repeated"] = filled(size, func(int) string { return p.Name + "=x&" })
			classes[p.Name+" is long"] = p.Name + "=" + strings.Repeat("1", size-len(p.Name)-1)
		}
	}
	return classes
}

// stuffed returns bodies of at most size bytes in which one value, of each that
// schema knows, is what may cost more than its bytes. Of members that are neither
// objects nor lists one of each kind is enough; tried has those that were.
func stuffed(schema *openapi3.Schema, size int, tried map[string]bool) map[string]string {
	classes := make(map[string]string)
	if len(faulty(schema, 2)) > len(faulty(schema, 1)) {
		classes["all is faulty"] = allFaulty(schema, size)
	}
	for _, p := range places(schema, place{}) {
		kind := fmt.Sprint(size, p.schema.Type, p.schema.Format, p.schema.Pattern)
		if tried[kind] {
			continue
		}
		tried[kind] = p.schema.Properties == nil && p.schema.Items == nil
		for class, value := range values(p.schema, size-len(p.before)-len(p.after)) {
			classes[p.before+" "+class] = p.before + value + p.after
		}
	}
	return classes
}

// A place is where in a body a value of schema stands: between two texts.
type place struct {
	schema        *openapi3.Schema
	before, after string
}

// places returns where schema's own value stands, and those below it.
func places(schema *openapi3.Schema, at place) []place {
	at.schema = schema
	all := []place{at}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		all = append(all, places(schema.Properties[name].Value, place{before: at.before + `{"` + name + `":`, after: "}" + at.after})...)
	}
	if schema.Items != nil {
		all = append(all, places(schema.Items.Value, place{before: at.before + "[", after: "]" + at.after})...)
	}
	return all
}

// values returns values of at most size bytes.
func values(schema *openapi3.Schema, size int) map[string]string {
	const deepest = 9000 // encoding/json takes 10,000
	depth := min(deepest, size/8)
	classes := map[string]string{
		"is a number":         strings.Repeat("1", size),
		"is a text":           `"` + strings.Repeat("a", size-2) + `"`,
		"is NULs":             `"` + strings.Repeat(`\u0000`, size/6-1) + `"`,
		"has a long name":     `{"` + strings.Repeat("<", size-6) + `":0}`,
		"has unknown members": "{" + filled(size-8, func(i int) string { return fmt.Sprintf(`"k%d":0,`, i) }) + `"k":0}`,
		"is deep lists": strings.Repeat("[", depth) + filled(size-2*depth-8, func(int) string { return `"\u0000",` }) +
			"0" + strings.Repeat("]", depth),
		"is deep objects": strings.Repeat(`{"a":`, depth) + `"\u0000"` + strings.Repeat("}", depth),
	}
	for _, element := range []string{`""`, `{"k":0}`} {
		classes["lists "+element] = "[" + filled(size-2-len(element), func(int) string { return element + "," }) + element + "]"
	}
	for name := range schema.Properties {
		classes["repeats a member"] = "{" + filled(size-8, func(int) string { return `"` + name + `":[],` }) + `"k":0}`
	}
	return classes
}

// filled returns as many parts as size has room for.
func filled(size int, part func(int) string) string {
	var all strings.Builder
	for i := 0; ; i++ {
		next := part(i)
		if all.Len()+len(next) > size {
			return all.String()
		}
		all.WriteString(next)
	}
}

// allFaulty returns the longest body within size of which every value is faulty.
func allFaulty(schema *openapi3.Schema, size int) string {
	n := 1
	for len(faulty(schema, n+n/8+1)) <= size {
		n += n/8 + 1
	}
	return faulty(schema, n)
}

// faulty returns a value that has what schema knows, with n elements in each list,
// and nothing of the right type.
func faulty(schema *openapi3.Schema, n int) string {
	switch {
	case len(schema.Properties) > 0:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			members = append(members, `"`+name+`":`+faulty(schema.Properties[name].Value, n))
		}
		return "{" + strings.Join(members, ",") + "}"
	case schema.Items != nil:
		return "[" + strings.Repeat(faulty(schema.Items.Value, n)+",", n-1) + faulty(schema.Items.Value, n) + "]"
	}
	return "[]"
}
