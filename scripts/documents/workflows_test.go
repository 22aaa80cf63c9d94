package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A workflow is what GitHub runs.
type workflow struct {
	Permissions map[string]string
	Concurrency map[string]any
	Jobs        map[string]job
}

type job struct {
	Uses    string // another workflow, in the place of steps
	Timeout int    `yaml:"timeout-minutes"`
	Steps   []struct {
		Uses string
		Run  string
		With map[string]any
	}
}

var (
	use = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	// Tags move; a commit does not. The comment is for readers, and for the robot that raises both.
	pinned = regexp.MustCompile(`^(\./\.github/workflows/\w+\.yml|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	// A step runs one program, and has no logic of its own.
	command = regexp.MustCompile(`^(make \S.*|scripts/[\w.-]+ .*|gh release create .*)$`)
)

// Workflows may read the sources and nothing else unless a job says so, end, and run
// only what is pinned or in the tree.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows, error %v", len(files), err)
	}
	makefile := read(t, "Makefile")
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, ".github/workflows/"+name)
			for _, found := range use.FindAllStringSubmatch(text, -1) {
				if !pinned.MatchString(found[1]) {
					t.Errorf("uses %s: must be a commit with its version in a comment", found[1])
				}
			}
			var w workflow
			if err := yaml.Unmarshal([]byte(text), &w); err != nil {
				t.Fatal(err)
			}
			if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
				t.Errorf("permissions are %v, must be contents: read", w.Permissions)
			}
			if w.Concurrency["group"] == nil {
				t.Error("must have a concurrency group")
			}
			for name, j := range w.Jobs {
				j.check(t, name, makefile)
			}
		})
	}
}

func (j job) check(t *testing.T, name, makefile string) {
	t.Helper()
	if j.Uses == "" && j.Timeout == 0 {
		t.Errorf("%s: must have timeout-minutes", name)
	}
	for _, step := range j.Steps {
		if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
			t.Errorf("%s: checkout must have persist-credentials: false", name)
		}
		if step.Run == "" {
			continue
		}
		if !command.MatchString(step.Run) || strings.ContainsAny(step.Run, "\n;&|") {
			t.Errorf("%s: a step must run one program of the project, not %q", name, step.Run)
		}
		words := strings.Fields(step.Run)
		switch {
		case words[0] == "make" && words[1] != "${{":
			if !strings.Contains(makefile, "\n"+words[1]+":") {
				t.Errorf("%s: there is no target %s", name, words[1])
			}
		case strings.HasPrefix(words[0], "scripts/"):
			exists(t, words[0])
		}
	}
}
