package notification_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	root = "../../.."
	page = "notification-service/internal/web/app/src"
)

// A developer who adds an event finds here every other place that has to know it. Its
// queue, its retries and its dead letters come by themselves.
func TestEventIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	for _, key := range event.Keys() {
		t.Run(string(key), func(t *testing.T) {
			t.Parallel()
			checkEnum(t, "docs/openapi/report-service.yaml", "RoutingKey", "", key)
			checkEnum(t, "docs/openapi/notification-service.yaml", "Notification", "type", key)
			if !notification.IsPrivate(key) {
				checkEnum(t, "docs/openapi/notification-service.yaml", "FeedEvent", "type", key)
			}
			checkPage(t, key)
			file, properties := schemaOf(t, key)
			for _, line := range []string{
				"address: " + string(key) + "\n",
				"address: " + event.Topology{}.Queue(key) + "\n",
				"$ref: schemas/" + file + "}",
			} {
				if !strings.Contains(string(read(t, "docs/asyncapi.yaml")), line) {
					t.Errorf("docs/asyncapi.yaml: no %q", strings.TrimSpace(line))
				}
			}
			checkDescription(t, key, properties)
			checkMask(t, file, properties)
		})
	}
}

// A property is what the tests need of one in docs/schemas.
type property struct {
	Type     any
	Enum     []string
	Format   string
	Personal *bool `json:"x-personal"`
}

// schemaOf returns the schema that says it is of key.
func schemaOf(t *testing.T, key event.Key) (file string, properties map[string]property) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(root), "docs/schemas/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		var schema struct {
			Description string
			Properties  map[string]property
		}
		if err := json.Unmarshal(read(t, path), &schema); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.Contains(schema.Description, "Routing key "+string(key)+".") {
			return filepath.Base(path), schema.Properties
		}
	}
	t.Fatalf("docs/schemas: no schema whose description says \"Routing key %s.\"", key)
	return "", nil
}

// sample returns a body with every property that the schema has.
func sample(properties map[string]property) map[string]any {
	body := make(map[string]any)
	for name, p := range properties {
		switch {
		case len(p.Enum) > 0:
			body[name] = p.Enum[0]
		case p.Format == "uuid":
			body[name] = "0198c0de-0000-7000-8000-000000000001"
		case p.Format == "date":
			body[name] = "2026-12-11"
		case isList(p.Type, "boolean"):
			body[name] = true
		case isList(p.Type, "array"):
			body[name] = []int{2}
		case p.Type == "integer", isList(p.Type, "integer"):
			body[name] = 1767225600
		case isList(p.Type, "number"): // degrees
			body[name] = 6.9
		default:
			body[name] = "canary-" + name
		}
	}
	return body
}

func isList(types any, name string) bool {
	list, _ := types.([]any)
	return slices.Contains(list, any(name))
}

// checkDescription makes sure that readers can see what happened, to which report,
// and when.
func checkDescription(t *testing.T, key event.Key, properties map[string]property) {
	t.Helper()
	body := encode(t, sample(properties))
	m, err := event.Decode(key, body)
	if err != nil {
		t.Fatalf("platform/event/event.go: refuses what the schema describes: %v\n%s", err, body)
	}
	const file = "notification-service/internal/notification/notification.go"
	effect := notification.Of(m, "ann")
	if len(effect.Drafts) == 0 {
		t.Fatalf("%s: Of tells nobody of %s", file, key)
	}
	for _, data := range []notification.Data{effect.Feed, effect.Drafts[0].Data} {
		if data.Type != key || data.ReportTitle != "canary-report_title" || data.HappenedAt.Year() != 2026 {
			t.Errorf("%s: describe gives a %s no title or no time: %+v", file, key, data)
		}
		bare := notification.Data{Type: data.Type, ReportID: data.ReportID, ReportVersion: data.ReportVersion,
			ReportTitle: data.ReportTitle, HappenedAt: data.HappenedAt}
		if data == bare {
			t.Errorf("%s: describe says no more of a %s than that it happened", file, key)
		}
	}
}

// checkMask makes sure that operators see nobody who is named in a dead letter.
func checkMask(t *testing.T, file string, properties map[string]property) {
	t.Helper()
	var shown map[string]any
	if err := json.Unmarshal(deadletter.MaskBody(encode(t, sample(properties))), &shown); err != nil {
		t.Fatal(err)
	}
	for name, p := range properties {
		text, isText := shown[name].(string)
		if !isText || len(p.Enum) > 0 || p.Format != "" {
			continue
		}
		canary := strings.Contains(text, "canary")
		switch {
		case p.Personal == nil:
			t.Errorf("docs/schemas/%s: %s does not say whether it names a person (\"x-personal\": true or false)", file, name)
		case *p.Personal && canary:
			t.Errorf("platform/deadletter/mask.go: shows %s, which names a person", name)
		case !*p.Personal && !canary:
			t.Errorf("platform/deadletter/mask.go: hides %s, which names nobody", name)
		}
	}
	// A body that is not JSON shows the names of fields and the values of closed sets.
	for name, p := range properties {
		for _, word := range append(slices.Clone(p.Enum), name) {
			if masked := string(deadletter.MaskBody([]byte("{" + word))); masked != `"{`+word+`"` {
				t.Errorf("platform/deadletter/mask.go: shownWords lacks %s of docs/schemas/%s", word, file)
			}
		}
	}
}

// checkEnum looks into a schema of an OpenAPI document, or one of its properties.
func checkEnum(t *testing.T, file, name, property string, key event.Key) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	schema := document.Components.Schemas[name]
	if schema != nil && property != "" {
		schema = schema.Value.Properties[property]
	}
	if schema == nil || !slices.Contains(schema.Value.Enum, any(string(key))) {
		t.Errorf("%s: %s does not allow %q", file, strings.TrimSuffix(name+"/"+property, "/"), key)
	}
}

// checkPage makes sure that the page has words for the event, in each of its
// languages.
func checkPage(t *testing.T, key event.Key) {
	t.Helper()
	const describe = page + "/ui/describe.ts"
	_, after, found := strings.Cut(string(read(t, describe)), "case '"+string(key)+"':")
	if !found {
		t.Errorf("%s: no case for %q", describe, key)
		return
	}
	words, _, _ := strings.Cut(after, "case ")
	languages, err := fs.Glob(os.DirFS(root), page+"/lang/page.??.json")
	if err != nil || len(languages) < 2 {
		t.Fatalf("languages of the page: %q, %v", languages, err)
	}
	used := 0
	for _, file := range languages {
		var translations map[string]string
		if err := json.Unmarshal(read(t, file), &translations); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for part := range strings.SplitSeq(words, "'") {
			if strings.HasPrefix(part, "event.") {
				used++
				if translations[part] == "" && translations[part+".other"] == "" { // .other: of a number of things
					t.Errorf("%s: no words for %q", file, part)
				}
			}
		}
	}
	if used == 0 {
		t.Errorf("%s: the case for %q uses no words of the languages (event.…)", describe, key)
	}
}

func encode(t *testing.T, body map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
