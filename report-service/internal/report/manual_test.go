package report_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The manuals name every status, and say of each what it leads to.
func TestManualsKnowEveryStatus(t *testing.T) {
	t.Parallel()
	checkTransitions(t, "docs/problems.md", "From *pending*", regexp.MustCompile(`\*([a-z ]+)\*`))
	checkTransitions(t, "docs/openapi/report-service.yaml", "`pending` leads to", regexp.MustCompile("`([a-z_]+)`"))
	for _, in := range []struct{ language, folder, readme, reason string }{
		{"en", "docs", "", " (with a reason)"},
		{"id", "docs/id", "README.id.md", " (dengan alasan)"},
	} {
		var words map[string]string
		if err := json.Unmarshal(read(t, page+"/lang/page."+in.language+".json"), &words); err != nil {
			t.Fatal(err)
		}
		for _, status := range constants(t, "Status") {
			name := words["status."+status]
			checkText(t, "README.md", "*"+strings.ReplaceAll(status, "_", " ")+"*")
			if in.readme != "" {
				checkText(t, in.readme, "*"+name+"*")
			}
			checkText(t, in.folder+"/residents.md", "| "+name+" | ")
			var leads []string
			for _, transition := range report.Status(status).Transitions() {
				to := words["status."+string(transition.To)]
				if transition.NoteRequired {
					to += in.reason
				}
				leads = append(leads, to)
			}
			checkText(t, in.folder+"/officials.md", "| "+name+" | "+strings.Join(leads, ", ")+" |")
		}
	}
}

// checkTransitions reads the sentence of a document that begins with beginning. Each
// part of it, up to a semicolon, names a status and then those that it leads to.
func checkTransitions(t *testing.T, file, beginning string, name *regexp.Regexp) {
	t.Helper()
	_, sentence, found := strings.Cut(string(read(t, file)), beginning)
	if !found {
		t.Errorf("%s: no sentence begins with %q", file, beginning)
		return
	}
	sentence, _, _ = strings.Cut(beginning+sentence, ".")
	says := make(map[string][]string)
	for part := range strings.SplitSeq(sentence, ";") {
		var named []string
		for _, found := range name.FindAllStringSubmatch(part, -1) {
			named = append(named, strings.ReplaceAll(found[1], " ", "_"))
		}
		if len(named) > 0 {
			says[named[0]] = named[1:]
		}
	}
	for _, from := range constants(t, "Status") {
		var leads []string
		for _, transition := range report.Status(from).Transitions() {
			leads = append(leads, string(transition.To))
		}
		if !sameSet(says[from], leads) {
			t.Errorf("%s: says that %s leads to %q, and it leads to %q", file, from, says[from], leads)
		}
	}
}
