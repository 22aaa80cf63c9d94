package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Prometheus says nothing of an expression about a metric or a label that does not
// exist: the alert never comes, and the panel stays empty. Each one in the rules and
// dashboards is one that the started programs export, after a report, a photo, a dead
// letter and a webhook.
func TestRulesAndDashboardsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	c := startStackWithMetrics(t)
	exprs, have := expressions(t), make(series)
	var missing []string
	defer func() { // also when the wait is in vain
		slices.Sort(missing)
		for _, line := range missing {
			t.Error(line)
		}
	}()
	eventually.True(t, "every metric of the rules and dashboards is exported", func() bool {
		for _, p := range []*process{c.report, c.notification, c.worker, c.photo} {
			have.read(t, p)
		}
		have.record(t)
		missing = nil
		for where, expr := range exprs {
			for _, what := range have.missing(expr) {
				missing = append(missing, where+": "+what)
			}
		}
		return len(missing) == 0
	})
}

// startStackWithMetrics returns a stack whose four programs have handled a report, a
// photo, a dead letter and a webhook, so that most of their metrics have series.
func startStackWithMetrics(t *testing.T) *stack {
	t.Helper()
	c := startStack(t)
	c.worker.env["REPORT_SERVICE_URL"] = c.report.url()
	feed := c.listenToFeed()
	other := openOtherSystem(t)
	other.register(c, c.userOf("operator", "operator"))
	c.startPhotoWorker()
	ana := c.userOf("ana", "resident")
	report := file(t, ana, "public")
	feed.await(t, 1)
	other.await(1)
	c.verdictOn(ana, report, c.upload(ana, report, smallPicture(t)))
	broken := c.message(event.VoteReceivedKey, report.ID, ana.ID, `null`)
	c.publish(c.channel(), event.VoteReceivedKey, broken)
	c.awaitDeadLetter("queue.vote_received", broken.MessageId)
	return c
}

// expressions returns those of the rules and the dashboards, by where they are. The
// legend of a panel is one as well, which names labels.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, r := range rules(t) {
		all[fmt.Sprintf("alerts.yml, %s%s %v", r.Alert, r.Record, r.Labels)] = r.Expr
	}
	folder := filepath.Join(root(), "deploy", "grafana", "dashboards")
	for _, entry := range must(os.ReadDir(folder)) {
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		if err := json.Unmarshal(must(os.ReadFile(filepath.Join(folder, entry.Name()))), &d); err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				legend := regexp.MustCompile(`{{(\w+)}}`).ReplaceAllString(target.LegendFormat, "by ($1)")
				all[entry.Name()+", "+p.Title+", "+target.LegendFormat] = target.Expr + " " + strings.Join(regexp.MustCompile(`by \(\w+\)`).FindAllString(legend, -1), " ")
			}
		}
	}
	if len(all) < 80 {
		t.Fatalf("there are %d expressions, must be 80 or more", len(all))
	}
	return all
}

type rule struct {
	Alert, Record, Expr string
	Labels              map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(must(os.ReadFile(filepath.Join(root(), "deploy", "prometheus", "alerts.yml"))), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// series are metrics, each with its labels, and each label with its values.
type series map[string]map[string]map[string]bool

// add adds a metric, and what Prometheus adds to it.
func (s series) add(name string, labels map[string]string) {
	if s[name] == nil {
		s[name] = map[string]map[string]bool{"job": nil, "instance": nil}
	}
	for label, value := range labels {
		if s[name][label] == nil {
			s[name][label] = make(map[string]bool)
		}
		s[name][label][value] = true
	}
}

var (
	exported = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? `)
	pair     = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	selector = regexp.MustCompile(`(?:[0-9][\w.]*|\$\w+)|([a-zA-Z_:][\w:]*)( *\()?(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!=|!~|=)"([^"]*)"`)
)

// read adds what p exports.
func (s series) read(t *testing.T, p *process) {
	t.Helper()
	s.add("up", nil)
	for line := range strings.Lines(metricsOf(t, p)) {
		if found := exported.FindStringSubmatch(line); found != nil {
			labels := make(map[string]string)
			for _, l := range pair.FindAllStringSubmatch(found[2], -1) {
				labels[l[1]] = l[2]
			}
			s.add(found[1], labels)
		}
	}
}

// metricsOf returns what p exports, as text.
func metricsOf(t *testing.T, p *process) string {
	t.Helper()
	status, answer, err := operation{http.MethodGet, "/metrics", nil, "/metrics"}.send(t.Context(), p.operations(), "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("read the metrics of %s: answered %d, error %v", p.path, status, err)
	}
	return string(answer)
}

// record adds what the rules record: the labels that they give, and those they keep.
func (s series) record(t *testing.T) {
	t.Helper()
	for _, r := range rules(t) {
		if r.Record != "" {
			s.add(r.Record, r.Labels)
			for _, label := range grouped(r.Expr) {
				s[r.Record][label] = nil
			}
		}
	}
}

// grouped returns the labels by which expr groups.
func grouped(expr string) (labels []string) {
	for _, found := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(found[1], ",") {
			if label = strings.TrimSpace(label); label != "" {
				labels = append(labels, label)
			}
		}
	}
	return labels
}

// missing returns the metrics and labels of expr that do not exist, and the values that
// a label must be equal to and never has. Statuses are those of requests that failed,
// and programs' names are compared by the chart's tests.
func (s series) missing(expr string) (missing []string) {
	keywords := []string{"and", "or", "unless", "offset", "bool"}
	kept := make(map[string]bool)
	for _, found := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(expr, ""), -1) {
		name := found[1]
		if name == "" || found[2] != "" || slices.Contains(keywords, name) {
			continue
		}
		labels := s[name]
		if labels == nil {
			missing = append(missing, "there is no metric "+name)
			continue
		}
		for label := range maps.Keys(labels) {
			kept[label] = true
		}
		for _, m := range matcher.FindAllStringSubmatch(found[3], -1) {
			values, ok := labels[m[1]]
			if !ok {
				missing = append(missing, name+" has no label "+m[1])
			} else if m[2] == "=" && m[1] != "status" && m[1] != "job" && !values[m[3]] {
				missing = append(missing, name+" never has "+m[0])
			}
		}
	}
	for _, label := range grouped(expr) {
		if len(missing) == 0 && !kept[label] {
			missing = append(missing, "no metric of it has the label "+label)
		}
	}
	return missing
}
