// Package alerts_test looks at the files for Prometheus and Grafana: rules, their tests,
// their runbook, and dashboards. scripts/e2e compares their metrics with those of
// started services.
package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	root    = "../.."
	runbook = "https://github.com/cityconnect/cityconnect/blob/main/docs/runbook.md#"
)

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// rules returns the alerts, by their names.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	decode(t, "deploy/prometheus/alerts.yml", &file)
	all := make(map[string]rule)
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if r.Alert != "" {
				all[r.Alert] = r
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("there are %d alerts, must be 20 or more", len(all))
	}
	return all
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each alert has a case in which it fires and one in which it must not. scripts/lint.sh
// runs them.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/*_test.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests of the rules, error %v", err)
	}
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, path := range files {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					AlertName string `yaml:"alertname"`
					ExpAlerts []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		decode(t, "deploy/prometheus/"+filepath.Base(path), &file)
		for _, test := range file.Tests {
			for _, check := range test.AlertRuleTest {
				if len(check.ExpAlerts) > 0 {
					fires[check.AlertName] = true
				} else {
					silent[check.AlertName] = true
				}
			}
		}
	}
	known := rules(t)
	for name := range known {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: has a test in which it fires: %t, in which it does not: %t; must have both", name, fires[name], silent[name])
		}
	}
	for _, tested := range []map[string]bool{fires, silent} {
		for name := range tested {
			if _, ok := known[name]; !ok {
				t.Errorf("%s is tested, and there is no such alert", name)
			}
		}
	}
}

// Each alert leads to its section of the runbook, and each section is an alert's. It
// says what the alert means for residents, where to look, what to do and when to stop.
func TestEveryAlertHasItsSection(t *testing.T) {
	t.Parallel()
	sections := make(map[string]string)
	for _, section := range strings.Split(read(t, "docs/runbook.md"), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	known := rules(t)
	for name, r := range known {
		// As GitHub makes an anchor of a heading of one word.
		if got, want := r.Annotations["runbook_url"], runbook+strings.ToLower(name); got != want {
			t.Errorf("%s leads to %q, must lead to %s", name, got, want)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		text, ok := sections[name]
		if !ok {
			t.Errorf("docs/runbook.md has no section %s", name)
			continue
		}
		severity := map[string]string{"page": "\nPage. ", "ticket": "\nTicket. "}[r.Labels["severity"]]
		for _, part := range []string{severity, "- **Residents:** ", "- **First look:** ", "- **Do:** ", "- **Stop when:** "} {
			if part == "" || !strings.Contains(text, part) {
				t.Errorf("the section %s must have %q, its severity is %q", name, part, r.Labels["severity"])
			}
		}
	}
	for name := range sections {
		if _, ok := known[name]; !ok {
			t.Errorf("docs/runbook.md has a section %s, and there is no such alert", name)
		}
	}
}

// The runbook's links to its own sections, which scripts/lint.sh does not follow.
func TestRunbookLinksToItself(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for name := range rules(t) {
		known[strings.ToLower(name)] = true
	}
	for _, found := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(read(t, "docs/runbook.md"), -1) {
		if !known[found[1]] {
			t.Errorf("docs/runbook.md leads to #%s, and has no such section", found[1])
		}
	}
}
