// Package documents tests documents whose words must exist in the tree.
package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/topology"
)

const root = "../.."

// document is where the requirements are.
const document = "docs/owner-documents.md"

// lines are how many things each of the five documents names.
var lines = map[string]int{"004": 82, "000": 29, "001": 21, "002": 18, "003": 27}

// A row is a line of one of the tables.
type row struct {
	document string
	number   int
	state    string
	where    string
}

// rows reads the tables.
func rows(t *testing.T) []row {
	t.Helper()
	text := read(t, document)
	var all []row
	var in string
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			in, _, _ = strings.Cut(title, ":")
		}
		cells := strings.Split(strings.TrimSpace(line), " | ")
		number, err := strconv.Atoi(strings.TrimPrefix(cells[0], "| "))
		if err != nil {
			continue
		}
		if len(cells) != 4 {
			t.Errorf("%s %d: has %d cells, must have 4", in, number, len(cells))
			continue
		}
		all = append(all, row{in, number, cells[2], strings.TrimSuffix(cells[3], " |")})
	}
	return all
}

// Every line of the five documents has a row, and every row an answer.
func TestEveryRequirementHasARow(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, r := range rows(t) {
		seen[r.document]++
		if r.number != seen[r.document] {
			t.Errorf("%s: row %d comes in the place of %d", r.document, r.number, seen[r.document])
		}
		if r.state != "✓" && r.state != "≈" {
			t.Errorf("%s %d: state must be ✓ or ≈, not %q", r.document, r.number, r.state)
		}
		if r.where == "" {
			t.Errorf("%s %d: says nowhere", r.document, r.number)
		}
	}
	for name, want := range lines {
		if seen[name] != want {
			t.Errorf("%s has %d rows, must have %d", name, seen[name], want)
		}
	}
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	path     = regexp.MustCompile(`^\.?[\w.*-]+(/[\w.*-]+)+$|^[\w.-]+\.(md|yml|yaml|work|sh|ps1|json)$`)
	route    = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/\S*)$`)
	variable = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	test     = regexp.MustCompile(`^Test[A-Z]\w+$`)
	metric   = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*_(total|seconds|ready|waiting|open|consumers|connected)$`)
	option   = regexp.MustCompile(`^-[\w-]+$`)
	target   = regexp.MustCompile(`^make ([\w-]+)`)
)

// Whatever the rows name is in the tree.
func TestEverythingNamedExists(t *testing.T) {
	t.Parallel()
	have := load(t)
	for _, r := range rows(t) {
		for _, found := range quoted.FindAllStringSubmatch(r.where, -1) {
			if what := have.missing(found[1]); what != "" {
				t.Errorf("%s %d: there is no %s %s", r.document, r.number, what, found[1])
			}
		}
	}
}

// A tree is what the repository has.
type tree struct {
	routes   map[string]bool
	settings map[string]bool // words of .env.example, the manual of settings, and Compose's file
	makefile string
	programs string // what is built, and how it is deployed
	services string // their Go, and what they share
	rules    string // of Prometheus
	tests    string
	metrics  map[string]bool // words of the programs, and of Prometheus' rules
}

// missing returns what kind of thing name is, if it does not exist.
func (have *tree) missing(name string) string {
	switch parts := route.FindStringSubmatch(name); {
	case parts != nil:
		if !have.routes[name] {
			return "route"
		}
	case target.MatchString(name):
		if !strings.Contains(have.makefile, "\n"+target.FindStringSubmatch(name)[1]+":") {
			return "target"
		}
	case option.MatchString(name):
		if !strings.Contains(have.programs, `"`+name[1:]+`"`) { // as Go's flags are registered
			return "flag"
		}
	case test.MatchString(name):
		if !strings.Contains(have.tests, "\nfunc "+name+"(") {
			return "test"
		}
	case variable.MatchString(name):
		if !have.settings[name] {
			return "variable"
		}
	case metric.MatchString(name):
		if !have.metrics[name] {
			return "metric"
		}
	case path.MatchString(name):
		found, err := filepath.Glob(filepath.Join(root, name))
		if err != nil || len(found) == 0 {
			return "file"
		}
	case !strings.Contains(have.programs, name) && !strings.Contains(have.rules, name):
		return "mention of"
	}
	return ""
}

// load reads the tree.
func load(t *testing.T) *tree {
	t.Helper()
	have := &tree{
		routes: map[string]bool{}, makefile: "\n" + read(t, "Makefile"),
		settings: words(read(t, ".env.example") + read(t, "docs/configuration.md") + read(t, "docker-compose.yml")),
	}
	for _, name := range []string{"report-service", "notification-service"} {
		var api struct {
			Paths map[string]map[string]yaml.Node
		}
		if err := yaml.Unmarshal([]byte(read(t, "docs/openapi/"+name+".yaml")), &api); err != nil {
			t.Fatal(err)
		}
		for path, operations := range api.Paths {
			for method := range operations {
				have.routes[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	var programs, services, tests, metrics strings.Builder
	programs.WriteString(read(t, "docker-compose.yml"))
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() {
			if name == "node_modules" || name == "dist" || name == "documents" || len(name) > 2 && name[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		into := &programs
		switch ext := filepath.Ext(file); {
		case strings.HasSuffix(file, "_test.go"):
			into = &tests
		case ext == ".go":
			if in, _, _ := strings.Cut(strings.TrimPrefix(file, root+"/"), "/"); in != "scripts" && !strings.Contains(file, "/bench/") {
				into = &services
			}
		case strings.Contains(file, "/deploy/prometheus/") && ext == ".yml":
			into = &metrics
		case ext != ".sql" && ext != ".sh" && ext != ".ps1" && ext != ".template":
			return nil
		}
		text, err := os.ReadFile(file) //nolint:gosec // of the checkout
		into.Write(text)
		into.WriteByte('\n')
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	have.services, have.tests = services.String(), tests.String()
	have.programs = have.services + programs.String()
	have.rules = metrics.String()
	have.metrics = words(have.programs + have.rules)
	return have
}

// words returns the names in a text.
func words(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		all[word] = true
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file)) //nolint:gosec // of the checkout
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The manual lists each queue that the programs name, and no other.
func TestManualListsEveryQueue(t *testing.T) {
	t.Parallel()
	_, manual, _ := strings.Cut(read(t, "docs/recoverability.md"), "\n### Groups\n")
	manual, _, _ = strings.Cut(manual, "\n### ")
	listed := map[string]bool{}
	for _, found := range regexp.MustCompile("`(queue\\.[a-z_]+)`").FindAllStringSubmatch(manual, -1) {
		listed[found[1]] = true
	}
	declared := map[string]bool{}
	for _, found := range regexp.MustCompile(`"(queue\.[a-z_]+)"`).FindAllStringSubmatch(load(t).services, -1) {
		declared[found[1]] = true
	}
	for _, q := range topology.ContractQueues() {
		declared[q.Name] = true
	}
	for name := range declared {
		if !listed[name] {
			t.Errorf("docs/recoverability.md does not list %s", name)
		}
	}
	for name := range listed {
		if !declared[name] {
			t.Errorf("docs/recoverability.md lists %s, which nothing declares", name)
		}
	}
	if len(declared) < 9 {
		t.Errorf("found %d queues in the programs, want 9 or more", len(declared))
	}
}

// Each queue of docs/asyncapi.yaml has the messages that are published under its
// keys, and each channel has an operation.
func TestAsyncAPIConnectsEverything(t *testing.T) {
	t.Parallel()
	const file = "docs/asyncapi.yaml"
	type reference struct {
		Ref string `yaml:"$ref"`
	}
	var async struct {
		Channels map[string]struct {
			Address  string
			Messages map[string]yaml.Node
		}
		Operations map[string]struct{ Channel reference }
	}
	var api struct{ Webhooks map[string]yaml.Node }
	for name, into := range map[string]any{file: &async, "docs/openapi/notification-service.yaml": &api} {
		if err := yaml.Unmarshal([]byte(read(t, name)), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	used := map[string]bool{}
	for _, operation := range async.Operations {
		used[operation.Channel.Ref] = true
	}
	messages := map[string]map[string]yaml.Node{} // by address
	for name, channel := range async.Channels {
		messages[channel.Address] = channel.Messages
		if !used["#/channels/"+name] {
			t.Errorf("%s: channel %s has no operation", file, name)
		}
	}
	keys := map[string][]string{} // of queues
	for _, q := range topology.ContractQueues() {
		for _, key := range q.Keys {
			keys[q.Name] = append(keys[q.Name], string(key))
		}
	}
	for key := range api.Webhooks {
		keys["queue.webhooks"] = append(keys["queue.webhooks"], key)
	}
	for queue, keys := range keys {
		for _, key := range keys {
			for name := range messages[key] { // an operator's test is not published
				if _, ok := messages[queue][name]; !ok {
					t.Errorf("%s: %s has no message %s", file, queue, name)
				}
			}
		}
	}
}

// The manuals have the times at which a message is tried again.
func TestManualsHaveTheRetrySchedule(t *testing.T) {
	t.Parallel()
	schedule := consumer.Defaults().RetrySchedule()
	var waits, queues []string // such as "5 s" and "5s"
	attempts, begins := []string{"0 s"}, []string{"at once"}
	var sum time.Duration
	for i, delay := range schedule {
		sum += delay
		wait, another := fmt.Sprintf("%.0f s", delay.Seconds()), ""
		if i > 0 {
			another = "another "
		}
		waits, queues = append(waits, wait), append(queues, delay.String())
		attempts, begins = append(attempts, fmt.Sprintf("%.0f s", sum.Seconds())), append(begins, "after "+another+wait)
	}
	recoverability := []string{
		"retried --> received: " + join(waits, "or") + " later",
		"attempts: " + join(begins, "and") + " (`RETRY_MAX_ATTEMPTS`",
		"`cityconnect.retry." + strings.Join(queues, "`, `.") + "`: a fanout exchange",
	}
	for file, texts := range map[string][]string{
		"docs/recoverability.md":  recoverability,
		"docs/configuration.md":   {"the attempts are at " + join(attempts, "and") + "."},
		"docs/faq.md":             {"retried after " + join(waits, "and") + " first"},
		"docs/owner-documents.md": {"| " + strings.Join(waits, ", ") + " between attempts"},
	} {
		for _, text := range texts {
			if !strings.Contains(read(t, file), text) {
				t.Errorf("%s does not say %q", file, text)
			}
		}
	}
}

// join lists words as a sentence does: "a, b and c".
func join(list []string, word string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " " + word + " " + list[last]
}

// A list of an answer is always in it: a client that reads its length needs no
// check, and no test with answers of its own makes a missing one look right.
func TestListsOfAnswersAreRequired(t *testing.T) {
	t.Parallel()
	absent := map[string]string{
		"Problem.errors":      "only of requests with faults in fields",
		"Session.departments": "only of officials whose token names some",
		"Preferences.push":    "also a request, in which it was not from the beginning",
		"DeadLetter.attempts": "only with a single one",
		"Delivery.attempts":   "only with a single one",
	}
	for _, service := range []string{"report-service", "notification-service"} {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(read(t, "docs/openapi/"+service+".yaml")), &doc); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		var walk func(at any, name string)
		walk = func(at any, name string) {
			switch v := at.(type) {
			case []any:
				for _, each := range v {
					walk(each, name)
				}
			case map[string]any:
				if ref, ok := v["$ref"].(string); ok && !seen[ref] {
					seen[ref] = true
					var target any = doc
					for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
						target = target.(map[string]any)[step]
						name = step
					}
					walk(target, name)
				}
				required, _ := v["required"].([]any)
				properties, _ := v["properties"].(map[string]any)
				for property, schema := range properties {
					field := name + "." + property
					s, _ := schema.(map[string]any)
					if s["type"] == "array" && !slices.Contains(required, any(property)) && absent[field] == "" {
						t.Errorf("docs/openapi/%s.yaml: %s is a list of an answer and not required", service, field)
					}
				}
				for key, each := range v {
					if key == "properties" {
						for property, schema := range properties {
							walk(schema, name+"."+property)
						}
					} else if key != "requestBody" && key != "components" && key != "webhooks" {
						walk(each, name)
					}
				}
			}
		}
		walk(doc["paths"], "paths")
		if len(seen) < 40 {
			t.Errorf("docs/openapi/%s.yaml: read %d parts, want 40 or more", service, len(seen))
		}
	}
}

// Every GET that anybody may ask without signing in stands in the manual with its cost, so
// that none is added without a thought about who pays for it.
func TestPublicReadsAreListed(t *testing.T) {
	t.Parallel()
	public := make(map[string]bool)
	for _, name := range []string{"report-service", "notification-service", "open311"} {
		type security []map[string]any
		var document struct {
			Security security
			Paths    map[string]map[string]yaml.Node
		}
		if err := yaml.Unmarshal([]byte(read(t, "docs/openapi/"+name+".yaml")), &document); err != nil {
			t.Fatal(err)
		}
		for path, operations := range document.Paths {
			get, ok := operations["get"]
			if !ok {
				continue
			}
			operation := struct{ Security security }{document.Security}
			if err := get.Decode(&operation); err != nil {
				t.Fatal(err)
			}
			if len(operation.Security) == 0 || slices.ContainsFunc(operation.Security, func(one map[string]any) bool { return len(one) == 0 }) {
				public[path] = true
			}
		}
	}
	_, section, _ := strings.Cut(read(t, "docs/performance.md"), "### Reads without sign-in\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string]bool)
	for line := range strings.Lines(section) {
		operations, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, path := range regexp.MustCompile("`(/[^`]+)`").FindAllStringSubmatch(operations, -1) {
			if listed[path[1]] = true; !public[path[1]] {
				t.Errorf("%s is listed, but is not a GET without sign-in", path[1])
			}
		}
	}
	for path := range public {
		if !listed[path] {
			t.Errorf("GET %s needs no sign-in, and has no row in docs/performance.md, Reads without sign-in: what does it cost, and what bounds that?", path)
		}
	}
	if len(public) < 20 {
		t.Errorf("%d operations need no sign-in: the documents are not read rightly", len(public))
	}
}
