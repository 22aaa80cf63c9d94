// Package reference makes the references of the APIs, in Markdown, from the
// OpenAPI and AsyncAPI documents: a heading for each operation, message and
// schema, so that a search finds them and links to them are checked. The
// documentation's site has them, and so has the page.
package reference

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/oasdiff/yaml3"
)

const (
	repository = "https://github.com/cityconnect/cityconnect"
	problems   = "https://www.rfc-editor.org/rfc/rfc9457"
)

// Pages returns the references of the documents in docs, by name.
func Pages(docs fs.FS) (map[string]string, error) {
	pages := make(map[string]string)
	for _, name := range []string{"report-service", "notification-service"} {
		var err error
		if pages[name], err = openAPI(docs, "openapi/"+name+".yaml"); err != nil {
			return nil, err
		}
	}
	var err error
	pages["messages"], err = asyncAPI(docs, "asyncapi.yaml")
	return pages, err
}

// Slug returns the anchor of a heading, as GitHub makes it.
func Slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

var notInSlug = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc} -]`)

func read(docs fs.FS, name string, into any) error {
	document, err := fs.ReadFile(docs, name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(document, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// openAPI returns the page of an OpenAPI document.
func openAPI(docs fs.FS, file string) (string, error) {
	var doc api
	if err := read(docs, file, &doc); err != nil {
		return "", err
	}
	var page writer
	page.add("# "+doc.Info.Title+": API reference",
		fmt.Sprintf("Version %s. This page is made from [%s](%s/blob/main/docs/%s), which generators of clients read. Errors are [problems](../problems.md) as in [RFC 9457](%s).",
			doc.Info.Version, path.Base(file), repository, file, problems),
		doc.Info.Description)
	for _, tag := range doc.Tags {
		page.add("## "+strings.ToUpper(tag.Name[:1])+tag.Name[1:], tag.Description)
		for _, item := range slices.Concat(doc.Paths, doc.Webhooks) {
			for _, m := range item.value.methods() {
				if len(m.Tags) > 0 && m.Tags[0] == tag.Name {
					heading := item.key
					if strings.HasPrefix(heading, "/") {
						heading = m.method + " " + heading
					}
					page.operation(&doc, heading, item.value.Parameters, m.operation)
				}
			}
		}
	}
	page.add("## Schemas")
	for _, s := range doc.Components.Schemas {
		page.schema("### "+schemaHeading(s.key), s.value)
	}
	page.parameters("Parameters", doc.Components.Parameters)
	page.parameters("Headers", doc.Components.Headers)
	return page.String(), nil
}

// A method is an operation with its verb.
type method struct {
	method string
	*operation
}

func (i pathItem) methods() []method {
	all := []method{{"GET", i.Get}, {"POST", i.Post}, {"PUT", i.Put}, {"PATCH", i.Patch}, {"DELETE", i.Delete}}
	return slices.DeleteFunc(all, func(m method) bool { return m.operation == nil })
}

// asyncAPI returns the page of the AsyncAPI document, whose schemas are files next to it.
func asyncAPI(docs fs.FS, file string) (string, error) {
	var doc messaging
	if err := read(docs, file, &doc); err != nil {
		return "", err
	}
	var keys, queues [][]string
	published := make(map[string][]string) // routing keys, by message
	for _, c := range doc.Channels {
		var links []string
		for _, m := range c.value.Messages {
			name := doc.Components.Messages.get(path.Base(m.value.Ref)).Name
			links = append(links, link(name, name))
			if c.value.Bindings.AMQP.Is != "queue" {
				published[name] = append(published[name], code(c.value.Address))
			}
		}
		row := []string{code(c.value.Address), strings.Join(links, ", "), c.value.Description}
		if c.value.Bindings.AMQP.Is == "queue" {
			queues = append(queues, row)
		} else {
			keys = append(keys, row)
		}
	}
	var page writer
	page.add("# Messages between the services: reference",
		fmt.Sprintf("Version %s. This page is made from [%s](%s/blob/main/docs/%s) and the [schemas](%s/tree/main/docs/schemas). What happens to messages that fail: [recoverability](../recoverability.md).",
			doc.Info.Version, path.Base(file), repository, file, repository),
		doc.Info.Description,
		"## Routing keys",
		"All are published to the topic exchange "+code(doc.Channels[0].value.Bindings.AMQP.Exchange.Name)+".",
		table([]string{"routing key", "message", "meaning"}, keys),
		"## Queues",
		table([]string{"queue", "messages", "meaning"}, queues),
		"## Messages")
	for _, m := range doc.Components.Messages {
		var s schema
		ref := strings.TrimPrefix(m.value.Payload.Schema.Ref, "./")
		if err := read(docs, ref, &s); err != nil {
			return "", err
		}
		page.schema("### "+m.value.Name, &s, fmt.Sprintf("Routing key: %s. Schema: [%s](%s/blob/main/docs/%s).",
			strings.Join(published[m.value.Name], ", "), path.Base(ref), repository, ref))
	}
	for _, s := range doc.Components.Schemas {
		page.schema("## "+strings.ToUpper(s.key[:1])+s.key[1:], s.value)
	}
	return page.String(), nil
}

// A writer holds the blocks of a page.
type writer struct{ blocks []string }

// add appends blocks that are not empty.
func (w *writer) add(blocks ...string) {
	for _, b := range blocks {
		if b != "" {
			w.blocks = append(w.blocks, b)
		}
	}
}

func (w *writer) String() string { return strings.Join(w.blocks, "\n\n") }

var fieldHead = []string{"field", "type", "required", "meaning"}

func (w *writer) operation(doc *api, heading string, shared []parameter, o *operation) {
	w.add("### "+heading, "**"+o.Summary+".** "+o.Description, callers(doc, o))
	var parameters, bodies, answers [][]string
	for _, p := range slices.Concat(shared, o.Parameters) {
		if p.Ref != "" {
			p = doc.Components.Parameters.get(path.Base(p.Ref))
		}
		parameters = append(parameters, []string{code(p.Name), p.In, typeOf(p.Schema), yes(p.Required), p.Description})
	}
	for _, r := range o.Responses {
		found := r.value
		if found.Ref != "" {
			found = doc.Components.Responses.get(path.Base(found.Ref))
		}
		var headers []string
		for _, h := range found.Headers {
			headers = append(headers, code(h.key))
		}
		answers = append(answers, []string{code(r.key), found.Description, strings.Join(describe(found.Content), "; "), strings.Join(headers, ", ")})
	}
	w.add(table([]string{"parameter", "in", "type", "required", "meaning"}, parameters))
	if o.Body != nil {
		for _, c := range o.Body.Content {
			if c.value.Schema != nil && c.value.Schema.Ref == "" {
				bodies = append(bodies, fields(c.value.Schema, "")...)
			}
		}
		w.add("Body: " + strings.Join(describe(o.Body.Content), ", or ") + ". " + o.Body.Description)
	}
	w.add(table(fieldHead, bodies), table([]string{"answer", "when", "body", "headers"}, answers))
}

// callers returns the words for who may use an operation.
func callers(doc *api, o *operation) string {
	if o.Roles != nil && o.Security == nil {
		return "Roles: " + strings.Join(codes(o.Roles), ", ") + "."
	}
	security := cmp.Or(o.Security, doc.Security)
	if security == nil || len(*security) == 0 {
		return "Needs no sign-in."
	}
	if slices.ContainsFunc(*security, func(way map[string][]string) bool { return len(way) == 0 }) {
		if o.Roles != nil {
			return "The sign-in is optional; a connection's key is accepted."
		}
		return "The sign-in is optional."
	}
	return "For everybody who has signed in."
}

func (w *writer) schema(heading string, s *schema, notes ...string) {
	w.add(heading)
	w.add(notes...)
	w.add(s.Description)
	rows := fields(s, "")
	if len(rows) == 0 || s.AllOf != nil || s.OneOf != nil {
		w.add("Is: " + typeOf(s) + ".")
	}
	w.add(table(fieldHead, rows))
	if len(s.Examples) > 0 {
		w.add("```json\n" + s.Examples[0].json("  ") + "\n```")
	}
}

func (w *writer) parameters(heading string, all ordered[parameter]) {
	var rows [][]string
	for _, p := range all {
		rows = append(rows, []string{code(cmp.Or(p.value.Name, p.key)), typeOf(p.value.Schema), p.value.Description})
	}
	if rows != nil {
		w.add("## "+heading, table([]string{"name", "type", "meaning"}, rows))
	}
}

func describe(c content) []string {
	var all []string
	for _, media := range c {
		all = append(all, code(media.key)+": "+typeOf(media.value.Schema))
	}
	return all
}

// fields returns the rows of an object's fields, those of nested objects below their own.
func fields(s *schema, before string) [][]string {
	var rows [][]string
	for _, part := range append([]*schema{s}, s.AllOf...) {
		if part != s && part.Ref != "" {
			continue
		}
		for _, f := range part.Properties {
			rows = append(rows, []string{code(before + f.key), typeOf(f.value), yes(slices.Contains(part.Required, f.key)), f.value.Description})
			nested, name := f.value, before+f.key+"."
			if slices.Contains(nested.Types, "array") {
				nested, name = nested.Items, before+f.key+"[]."
			}
			if nested != nil && nested.Ref == "" {
				rows = append(rows, fields(nested, name)...)
			}
		}
	}
	return rows
}

// typeOf returns what a schema allows, in a few words.
func typeOf(s *schema) string {
	switch {
	case s == nil:
		return "anything"
	case s.Ref != "":
		name := path.Base(s.Ref)
		return link(schemaHeading(name), name)
	case s.OneOf != nil:
		return join(s.OneOf, " or ")
	case s.AnyOf != nil:
		return join(s.AnyOf, " or ")
	case s.AllOf != nil:
		return join(s.AllOf, " and ")
	case s.Const != nil:
		return code(s.Const.String())
	case s.Enum != nil:
		return strings.Join(codes(s.Enum), ", ")
	}
	kinds := slices.Clone(s.Types)
	if kinds == nil {
		kinds = words{"anything"}
		if s.Properties != nil {
			kinds = words{"object"}
		}
	}
	for i, kind := range kinds {
		if kind == "array" {
			kinds[i] = "list of " + typeOf(s.Items)
		}
	}
	return strings.Join(append([]string{strings.Join(kinds, " or ")}, limits(s)...), ", ")
}

func limits(s *schema) []string {
	var all []string
	if s.Format != "" {
		all = append(all, s.Format)
	}
	for _, l := range []struct{ low, high, unit string }{
		{s.Minimum, s.Maximum, ""}, {s.MinLength, s.MaxLength, " characters"}, {s.MinItems, s.MaxItems, " items"},
	} {
		switch {
		case l.low == "" && l.high == "":
		case l.high == "" && l.low == "1":
			all = append(all, "1"+strings.TrimSuffix(l.unit, "s")+" or more")
		case l.high == "":
			all = append(all, l.low+l.unit+" or more")
		case l.low == "":
			all = append(all, "at most "+l.high+l.unit)
		default:
			all = append(all, l.low+" to "+l.high+l.unit)
		}
	}
	if s.Pattern != "" {
		all = append(all, "matches "+code(s.Pattern))
	}
	if s.Default != nil {
		all = append(all, "default "+code(s.Default.String()))
	}
	return all
}

// table returns a table, or nothing where it would have no rows.
func table(head []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var out strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			out.WriteString("| " + strings.ReplaceAll(lines.ReplaceAllString(strings.TrimSpace(cell), " "), "|", `\|`) + " ")
		}
		out.WriteString("|\n")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return out.String()
}

var lines = regexp.MustCompile(`\s*\n\s*`)

// schemaHeading differs from a tag's, which may have the same name.
func schemaHeading(name string) string { return "Schema: " + name }

func link(heading, text string) string { return "[" + text + "](#" + Slug(heading) + ")" }

func code(text string) string { return "`" + text + "`" }

func codes[T any](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = code(fmt.Sprint(v))
	}
	return all
}

func join(schemas []*schema, word string) string {
	all := make([]string, len(schemas))
	for i, s := range schemas {
		all[i] = typeOf(s)
	}
	return strings.Join(all, word)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
