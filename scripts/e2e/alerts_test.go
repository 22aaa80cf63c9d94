package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Prometheus says nothing of a rule about a metric that does not exist: the
// alert never comes. Every name in the rules is one that a service registers.
func TestAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	rules := string(must(os.ReadFile(filepath.Join(root(), "deploy", "prometheus", "alerts.yml"))))
	name := regexp.MustCompile(`\b(?:broadcast|consumer|deliveries|http|outbox|rabbitmq|relay|schedule|sse|webhook)_[a-z_]+`)
	var named []string
	for _, expr := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		named = append(named, name.FindAllString(expr[1], -1)...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	if len(named) < 10 {
		t.Fatalf("the rules name %q, want more", named)
	}
	code := sources(t)
	for _, metric := range named {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			metric = strings.TrimSuffix(metric, suffix)
		}
		if !strings.Contains(code, `"`+metric+`"`) {
			t.Errorf("no service registers %s", metric)
		}
	}
}

// sources returns the code of the services and of what they share.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, module := range []string{"platform", "report-service", "notification-service"} {
		err := filepath.WalkDir(filepath.Join(root(), module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatalf("read sources: %v", err)
		}
	}
	return all.String()
}
