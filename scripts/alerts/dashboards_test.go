package alerts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ Expr, LegendFormat string }
}

// dashboards returns those that Grafana gets, by their files, without their rows.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d dashboards, must be 1 or more; error %v", len(files), err)
	}
	all := make(map[string]dashboard)
	for _, path := range files {
		var d dashboard
		name := filepath.Base(path)
		if err := json.Unmarshal([]byte(read(t, "deploy/grafana/dashboards/"+name)), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.Panels = slices.DeleteFunc(d.Panels, func(p panel) bool { return p.Type == "row" })
		all[name] = d
	}
	return all
}

// Every panel says what it shows and in which unit, and takes its data from the
// Prometheus that the reader chooses.
func TestDashboardsAreReadable(t *testing.T) {
	t.Parallel()
	for name, d := range dashboards(t) {
		if !strings.HasPrefix(d.UID, "cityconnect") || d.Title == "" {
			t.Errorf("%s has the uid %q and the title %q", name, d.UID, d.Title)
		}
		if l := d.Templating.List; len(l) != 1 || l[0].Name != "datasource" || l[0].Type != "datasource" || l[0].Query != "prometheus" {
			t.Errorf("%s has the variables %v, must have the one of the data source", name, l)
		}
		ids, titles := make(map[int]bool), make(map[string]bool)
		for _, p := range d.Panels {
			if ids[p.ID] || titles[p.Title] || p.Title == "" {
				t.Errorf("%s: the panel %d %q must have an id and a title of its own", name, p.ID, p.Title)
			}
			ids[p.ID], titles[p.Title] = true, true
			if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s, %s: must have a description, a unit, the data source ${datasource}, and a query: %+v", name, p.Title, p)
			}
			for _, target := range p.Targets {
				if target.Expr == "" || target.LegendFormat == "" {
					t.Errorf("%s, %s: a query must have an expression and a legend: %+v", name, p.Title, target)
				}
			}
		}
	}
}

// Prometheus' own program reads every expression.
func TestDashboardsAskWhatPrometheusReads(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	type record struct{ Record, Expr string }
	var rules []record
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				rules = append(rules, record{fmt.Sprintf("panel:%d", len(rules)), strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// Compose gives Grafana the dashboards and the folder that looks for them, and the
// runbook names panels that exist.
func TestDashboardsAreFound(t *testing.T) {
	t.Parallel()
	var provider struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	decode(t, "deploy/grafana/provisioning/dashboards/cityconnect.yml", &provider)
	compose := read(t, "docker-compose.yml")
	for _, mount := range []string{
		"./deploy/grafana/provisioning:/etc/grafana/provisioning:ro", "./deploy/grafana/dashboards:" + provider.Providers[0].Options.Path + ":ro",
	} {
		if !strings.Contains(compose, mount) {
			t.Errorf("docker-compose.yml must mount %s", mount)
		}
	}
	titles := make(map[string]bool)
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			titles[p.Title] = true
		}
	}
	named := regexp.MustCompile(`panels? \*([^*]+)\*(?: and \*([^*]+)\*)?`).FindAllStringSubmatch(read(t, "docs/runbook.md"), -1)
	if len(named) < 4 {
		t.Errorf("the runbook names %d panels, must name 4 or more", len(named))
	}
	for _, found := range named {
		for _, title := range found[1:] {
			if title != "" && !titles[title] {
				t.Errorf("the runbook names the panel %q, and no dashboard has it", title)
			}
		}
	}
}
