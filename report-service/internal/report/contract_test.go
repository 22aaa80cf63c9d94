package report_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	root    = "../../.."
	page    = "notification-service/internal/web/app/src"
	wording = "notification-service/internal/wording/words" // of mails and pushes
)

// A developer who adds a status, a privacy level or a vote finds here every other
// place that has to know it.
func TestStatusIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	update := updater(t)
	statuses := constants(t, "Status")
	checkSchema(t, "docs/schemas/status-update.json", "new_status", statuses)
	checkEnum(t, "docs/openapi/report-service.yaml", "Status", "", statuses)
	checkEnum(t, "docs/openapi/notification-service.yaml", "ReportStatus", "", statuses)
	checkText(t, "docs/openapi/report-service.yaml", fmt.Sprintf("maxItems: %d\n        items: {$ref: '#/components/schemas/Status'}", len(statuses)))
	for _, status := range statuses {
		if !reachable(report.Status(status)) {
			t.Errorf("report-service/internal/report/status.go: no transition leads to %q", status)
		}
		checkMessage(t, &event.StatusUpdate{Subject: subject, NewStatus: event.Status(status)})
		update("status", status)
		checkWords(t, "status."+status)
		checkWordsIn(t, wording, "status."+status)
		checkText(t, page+"/styles/tokens.css", "--"+status)
		checkText(t, page+"/styles/base.css", "data-status='"+status)
		checkText(t, page+"/styles/map.css", ".dot."+status)
		checkLists(t, status, statuses)
	}
	open, closed := split(statuses)
	for _, set := range [][]string{open, closed} {
		for _, status := range set {
			checkLists(t, status, set)
		}
	}
	checkQueries(t, open, closed)
}

// split returns the statuses of reports on which work goes on, and those of others.
func split(statuses []string) (open, closed []string) {
	for _, status := range statuses {
		if report.Status(status).Closed() {
			closed = append(closed, status)
		} else {
			open = append(open, status)
		}
	}
	return open, closed
}

// checkQueries makes sure that a query about several statuses is about all reports on
// which work goes on, or about all others.
func checkQueries(t *testing.T, open, closed []string) {
	t.Helper()
	const folder = "report-service/internal/postgres"
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		file := strings.TrimPrefix(path, root+"/")
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, list := range regexp.MustCompile(`\b(to_)?status in \([^)]*\)`).FindAllString(string(read(t, file)), -1) {
			found++
			var named []string
			for _, name := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(list, -1) {
				named = append(named, name[1])
			}
			if !sameSet(named, open) && !sameSet(named, closed) {
				t.Errorf("%s: %q must have %q or %q", file, list, open, closed)
			}
		}
	}
	if found == 0 {
		t.Errorf("%s: no query lists statuses: are they written in another way?", folder)
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestPrivacyIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	update := updater(t)
	levels := constants(t, "Privacy")
	checkSchema(t, "docs/schemas/report-created.json", "privacy_level", levels)
	checkEnum(t, "docs/openapi/report-service.yaml", "PrivacyLevel", "", levels)
	for _, level := range levels {
		checkMessage(t, &event.ReportCreated{Subject: subject, CategoryID: 1, CategoryName: "Other", PrivacyLevel: event.Privacy(level)})
		update("privacy_level", level)
		for _, word := range []string{"", ".hint", ".everyone", ".you"} {
			checkWords(t, "privacy."+level+word)
		}
	}
}

func TestVoteIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	var votes []string
	for _, name := range constants(t, "Vote") {
		if name != "None" {
			votes = append(votes, strings.ToLower(name))
		}
	}
	checkSchema(t, "docs/schemas/vote-received.json", "vote_type", votes)
	checkEnum(t, "docs/openapi/report-service.yaml", "VoteType", "", votes)
	checkEnum(t, "docs/openapi/notification-service.yaml", "Notification", "vote_type", votes)
	checkEnum(t, "docs/openapi/notification-service.yaml", "FeedEvent", "vote_type", votes)
	for _, vote := range votes {
		checkMessage(t, &event.VoteReceived{Subject: subject, VoterID: "u", NewScore: new(int64(1)), VoteType: event.VoteType(vote)})
		checkWords(t, "vote."+vote)
		checkWords(t, "event."+vote+".other")
	}
}

// reachable reports whether a report can come to have status s.
func reachable(s report.Status) bool {
	seen := []report.Status{report.Pending}
	for i := 0; i < len(seen); i++ {
		for _, next := range seen[i].Transitions() {
			if !slices.Contains(seen, next.To) {
				seen = append(seen, next.To)
			}
		}
	}
	return slices.Contains(seen, s)
}

var subject = event.Subject{ReportID: uuid.Max, ReportVersion: 1, ReportTitle: "Dark lamp", Timestamp: 1767225600}

// constants returns the constants of a type of package report: the values of
// those that are strings, the names of others.
func constants(t *testing.T, typeName string) (values []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || fmt.Sprint(spec.Type) != typeName {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				values = append(values, strings.Trim(text.Value, `"`))
			} else {
				values = append(values, spec.Names[0].Name)
			}
			return false
		})
	}
	if len(values) < 2 {
		t.Fatalf("found the constants %q of type %s: does it still have that name?", values, typeName)
	}
	return values
}

func checkMessage(t *testing.T, m event.Message) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Errorf("platform/event/event.go: Validate of %s: %v", m.Key(), err)
	}
}

func checkSchema(t *testing.T, file, property string, want []string) {
	t.Helper()
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(read(t, file), &schema); err != nil {
		t.Fatal(err)
	}
	checkSet(t, file+": "+property, schema.Properties[property].Enum, want)
}

// checkEnum looks into a schema of an OpenAPI document, or one of its properties.
func checkEnum(t *testing.T, file, name, property string, want []string) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	schema := document.Components.Schemas[name]
	if schema != nil && property != "" {
		schema = schema.Value.Properties[property]
	}
	var values []string
	if schema != nil {
		for _, value := range schema.Value.Enum {
			values = append(values, fmt.Sprint(value))
		}
	}
	checkSet(t, strings.TrimSuffix(file+": "+name+"/"+property, "/"), values, want)
}

func checkSet(t *testing.T, where string, got, want []string) {
	t.Helper()
	for _, value := range want {
		if !slices.Contains(got, value) {
			t.Errorf("%s does not allow %q", where, value)
		}
	}
	for _, value := range got {
		if !slices.Contains(want, value) {
			t.Errorf("%s allows %q, which package report does not know", where, value)
		}
	}
}

// updater returns a function that sets a column of table reports.
func updater(t *testing.T) func(column, value string) {
	t.Helper()
	pool := pgtest.Report(t)
	if _, err := pool.Exec(t.Context(), `
		insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
		values (gen_random_uuid(), 'Dark lamp', '', 1, 'public', 'pending', 1, now(), now())`); err != nil {
		t.Fatal(err)
	}
	return func(column, value string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `update reports set `+column+` = $1`, value); err != nil {
			t.Errorf("migrations/report: %s does not allow %q, which takes a new migration: %v", column, value, err)
		}
	}
}

// checkWords makes sure that the page has words under key, in each of its languages.
func checkWords(t *testing.T, key string) {
	t.Helper()
	checkWordsIn(t, page+"/lang", key)
}

// checkWordsIn expects a text for key in each language. Words that are loaded later have
// files of their own.
func checkWordsIn(t *testing.T, folder, key string) {
	t.Helper()
	for _, language := range []string{"en", "id"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*."+language+".json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("files of %s in %s: %q, %v", language, folder, files, err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			var words map[string]string
			if err := json.Unmarshal(read(t, strings.TrimPrefix(file, root+"/")), &words); err != nil {
				t.Fatal(err)
			}
			return words[key] != ""
		}) {
			t.Errorf("%s: no words for %q in %s", folder, key, language)
		}
	}
}

func checkText(t *testing.T, file, want string) {
	t.Helper()
	if !strings.Contains(string(read(t, file)), want) {
		t.Errorf("%s: no %s", file, want)
	}
}

// checkLists looks for sources of the page that name every other member of a
// set, of two or more, and not this one. What a test lists is its own affair.
func checkLists(t *testing.T, member string, set []string) {
	t.Helper()
	if len(set) < 3 {
		return
	}
	err := filepath.WalkDir(filepath.Join(root, page), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".ts") || strings.Contains(path, ".test.") {
			return err
		}
		file := strings.TrimPrefix(path, root+"/")
		text := read(t, file)
		names := func(word string) bool { return regexp.MustCompile(`\b` + word + `\b`).Match(text) }
		for _, other := range set {
			if other != member && !names(other) {
				return nil
			}
		}
		if !names(member) {
			t.Errorf("%s: names %q and not %q", file, set, member)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
