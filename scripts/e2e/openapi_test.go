package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client"
)

// A document is an OpenAPI description as far as walking it needs.
type document map[string]any

// An operation is a request that a document allows.
type operation struct {
	method, path string
	body         any    // nil for none
	template     string // as the document has it
}

// describe reads the document that a service serves.
func (c *stack) describe(p *process) document {
	c.t.Helper()
	return c.describeAt(p, "/openapi.json")
}

// describeAt reads the document that a service serves at path.
func (c *stack) describeAt(p *process, path string) document {
	c.t.Helper()
	service, doc := client.New(p.url()), document{}
	defer service.CloseIdle()
	if err := service.Do(c.t.Context(), http.MethodGet, path, nil, &doc); err != nil {
		c.t.Fatalf("read the OpenAPI document: %v", err)
	}
	return doc
}

// operations returns requests for every operation: with each of the values
// that its path can take, and with each value of an enumerated parameter.
// Operations that only read come first.
func (d document) operations(values map[string][]string) []operation {
	var reads, writes []operation
	paths, _ := d["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.object(paths[path])
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if item[method] == nil {
				continue
			}
			for _, op := range d.requests(strings.ToUpper(method), path, item, d.object(item[method]), values) {
				if method == "get" {
					reads = append(reads, op)
				} else {
					writes = append(writes, op)
				}
			}
		}
	}
	return append(reads, writes...)
}

func (d document) requests(method, path string, item, op map[string]any, values map[string][]string) []operation {
	shared, _ := item["parameters"].([]any)
	own, _ := op["parameters"].([]any)
	paths, queries := []string{path}, []string{""}
	base := url.Values{}
	for _, p := range append(slices.Clone(shared), own...) {
		param := d.object(p)
		name, schema := fmt.Sprint(param["name"]), d.object(param["schema"])
		enum, _ := d.object(schema["items"])["enum"].([]any)
		if enum == nil {
			enum, _ = schema["enum"].([]any)
		}
		switch {
		case param["in"] == "path":
			known := append(texts(enum), values[name]...)
			if (name == "photo_id" || name == "comment_id") && len(known) == 0 { // any will do
				known = []string{"0198c0de-0000-7000-8000-000000000002"}
			}
			paths = substitute(paths, "{"+name+"}", known)
		case param["in"] == "query" && param["required"] == true:
			base.Set(name, fmt.Sprint(d.sample(schema)))
		case param["in"] == "query":
			known := texts(enum)
			if name == "report_id" {
				known = append(known, values["id"]...)
			}
			for _, value := range known {
				queries = append(queries, url.Values{name: {value}}.Encode())
			}
		}
	}
	var body any
	if request := d.object(op["requestBody"]); len(request) > 0 {
		body = d.sample(d.object(d.object(d.object(request["content"])["application/json"])["schema"]))
	}
	var all []operation
	for _, p := range paths {
		for _, q := range queries {
			all = append(all, operation{method, p + "?" + base.Encode() + "&" + q, body, method + " " + path})
		}
	}
	return all
}

func texts(values []any) []string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func substitute(paths []string, placeholder string, values []string) []string {
	var all []string
	for _, p := range paths {
		for _, v := range values {
			all = append(all, strings.ReplaceAll(p, placeholder, url.PathEscape(v)))
		}
	}
	return all
}

// object follows references, and the first part of an allOf.
func (d document) object(v any) map[string]any {
	o, _ := v.(map[string]any)
	if ref, ok := o["$ref"].(string); ok {
		var at any = map[string]any(d)
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			inner, _ := at.(map[string]any)
			at = inner[step]
		}
		return d.object(at)
	}
	if all, ok := o["allOf"].([]any); ok && len(all) > 0 {
		return d.object(all[0])
	}
	return o
}

// sample returns a value that fits schema.
func (d document) sample(schema map[string]any) any {
	for _, from := range []string{"enum", "examples"} {
		if list, ok := schema[from].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	switch schema["type"] {
	case "object":
		value := map[string]any{}
		properties := d.object(schema["properties"])
		required, _ := schema["required"].([]any)
		for _, name := range required {
			value[fmt.Sprint(name)] = d.sample(d.object(properties[fmt.Sprint(name)]))
		}
		return value
	case "array":
		return []any{d.sample(d.object(schema["items"]))}
	case "integer", "number":
		if least, ok := schema["minimum"]; ok {
			return least
		}
		return 1
	case "boolean":
		return true
	}
	return "text"
}

// send makes the request to a service with token, "" for nobody, and returns
// the answer with its header. Of a stream it reads only how it begins.
func (op operation) send(ctx context.Context, base, token string) (status int, answer []byte, err error) {
	var body io.Reader = http.NoBody
	if op.body != nil {
		body = bytes.NewReader(must(json.Marshal(op.body)))
	}
	req, err := http.NewRequestWithContext(ctx, op.method, base+op.path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var all bytes.Buffer
	_ = resp.Header.Write(&all) // to memory
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		begin := make([]byte, 4096)
		n, err := resp.Body.Read(begin)
		return resp.StatusCode, append(all.Bytes(), begin[:n]...), err
	}
	_, err = io.Copy(&all, resp.Body)
	return resp.StatusCode, all.Bytes(), err
}
