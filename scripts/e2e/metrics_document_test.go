package e2e

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

var updateMetrics = flag.Bool("update-metrics", false, "write docs/metrics.md from what the programs export")

// docs/metrics.md has a row for each metric of the four programs, with the type, the
// labels and the words that they export. A metric that has no series yet cannot be read:
// its row must have the words that are in the code.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root(), "docs", "metrics.md")
	text := string(must(os.ReadFile(path)))
	documented, inCode := metricRows(text), helpsInCode(t)
	c := startStackWithMetrics(t)
	programs := map[string]*process{
		"report-service": c.report, "notification-service": c.notification, "delivery-worker": c.worker, "photo-worker": c.photo,
	}
	rows, polls := make(map[string]*metricRow), 0
	eventually.NothingMissing(t, "docs/metrics.md is what the programs export; -update-metrics writes it", func() string {
		for program, p := range programs {
			addExported(t, rows, program, p)
		}
		if polls++; *updateMetrics && polls > 40 { // by then everything has been read that begins by itself
			writeMetrics(t, path, text, documented, rows, inCode)
			return ""
		}
		return strings.Join(driftOf(documented, rows, inCode), "\n")
	})
}

// driftOf returns the differences between the rows of the document, what is exported, and
// the words in the code.
func driftOf(documented, rows map[string]*metricRow, inCode map[string]bool) (drift []string) {
	for _, row := range rows {
		// Another run may have had series in more programs.
		if have, ok := documented[row.name]; !ok || have.head() != row.head() || !contains(have.programs, row.programs) {
			drift = append(drift, "exported: "+row.String())
		}
	}
	helps := make(map[string]bool)
	for name, row := range documented {
		helps[row.help] = true
		if rows[name] == nil && !inCode[row.help] {
			drift = append(drift, "neither exported nor in the code: "+row.String())
		}
	}
	for help := range inCode {
		if !helps[help] {
			drift = append(drift, "in the code and without a row: "+help)
		}
	}
	slices.Sort(drift)
	return drift
}

// A metricRow is a row of the table.
type metricRow struct {
	name, kind, help string
	labels, programs []string
}

func (r *metricRow) head() string {
	return fmt.Sprintf("%s %s %s %s", r.name, r.kind, r.labels, r.help)
}

func (r *metricRow) String() string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |", r.name, r.kind, strings.Join(r.labels, ", "), r.help)
}

// section returns the heading below which the metric is: the programs that have it.
func (r *metricRow) section() string { return strings.Join(r.programs, ", ") }

var metricRowPattern = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\| (.*) \\|\n")

// metricRows returns the rows of the document by their metrics.
func metricRows(text string) map[string]*metricRow {
	rows := make(map[string]*metricRow)
	for _, section := range strings.Split(text, "\n## ")[1:] {
		programs, table, _ := strings.Cut(section, "\n")
		for _, m := range metricRowPattern.FindAllStringSubmatch(table, -1) {
			rows[m[1]] = &metricRow{name: m[1], kind: m[2], labels: listed(m[3]), programs: listed(programs), help: m[4]}
		}
	}
	return rows
}

func listed(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ", "), func(s string) bool { return s == "" })
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// addExported adds what the program exports, but for what every program in Go does.
func addExported(t *testing.T, rows map[string]*metricRow, program string, p *process) {
	t.Helper()
	var row *metricRow
	for line := range strings.Lines(metricsOf(t, p)) {
		if m := metricHead.FindStringSubmatch(line); m != nil {
			name := m[2]
			if prefix, _, _ := strings.Cut(name, "_"); prefix == "go" || prefix == "process" || prefix == "promhttp" {
				row = nil
				continue
			}
			if row = rows[name]; row == nil {
				row = &metricRow{name: name}
				rows[name] = row
			}
			if m[1] == "TYPE" {
				row.kind = m[3]
			} else {
				row.help = m[3]
			}
			row.programs = sortedSet(append(row.programs, program))
			continue
		}
		if found := exported.FindStringSubmatch(line); found != nil && row != nil {
			for _, l := range pair.FindAllStringSubmatch(found[2], -1) {
				if l[1] != "le" && l[1] != "quantile" { // of the type
					row.labels = sortedSet(append(row.labels, l[1]))
				}
			}
		}
	}
}

// metricHead matches the lines before the series of a metric.
var metricHead = regexp.MustCompile(`^# (HELP|TYPE) (\w+) (.*)\n`)

func sortedSet(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// helpsInCode returns the words of metrics in the code: sentences in files that make
// metrics.
func helpsInCode(t *testing.T) map[string]bool {
	t.Helper()
	helps := make(map[string]bool)
	for _, module := range []string{"platform", "report-service", "notification-service"} {
		err := filepath.WalkDir(filepath.Join(root(), module), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !slices.ContainsFunc([]string{"Help:", "NewDesc(", "crowd.Counted("}, func(s string) bool { return bytes.Contains(text, []byte(s)) }) {
				return err
			}
			file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == gotoken.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil && helpPattern.MatchString(s) {
						helps[s] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return helps
}

// helpPattern matches words that say what a metric is.
var helpPattern = regexp.MustCompile(`^[A-Z0-9].* .*[.a-z0-9]$`)

// writeMetrics writes the rows of what is exported, and keeps those of metrics without
// series if the code has their words.
func writeMetrics(t *testing.T, path, text string, documented, rows map[string]*metricRow, inCode map[string]bool) {
	t.Helper()
	for name, row := range documented {
		if have := rows[name]; have != nil {
			have.programs = sortedSet(append(have.programs, row.programs...)) // some are there by chance
		} else if inCode[row.help] {
			rows[name] = row
		}
	}
	lines := new(strings.Builder)
	section := ""
	for _, row := range slices.SortedFunc(maps.Values(rows), func(a, b *metricRow) int {
		return cmp.Or(cmp.Compare(a.section(), b.section()), cmp.Compare(a.name, b.name))
	}) {
		if row.section() != section {
			section = row.section()
			fmt.Fprintf(lines, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", section)
		}
		fmt.Fprintln(lines, row)
	}
	before, _, _ := strings.Cut(text, "\n## ")
	if err := os.WriteFile(path, []byte(before+lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
