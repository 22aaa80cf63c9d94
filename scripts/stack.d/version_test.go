package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A checkout has a version whether or not its tags came with it.
func TestVersion(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../version.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts/version.sh"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(subject string) { run("git", "commit", "-q", "--allow-empty", "-m", subject) }
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"no history", func() {}, `^$`},
		{"no release", func() { run("git", "init", "-q"); run("git", "add", "."); commit("first") }, `^[0-9a-f]{7} [0-9a-f]{40}$`},
		{"a release's commit", func() { commit("release: 1.2.3") }, `^v1\.2\.3 [0-9a-f]{40}$`},
		{"behind it", func() { commit("more") }, `^v1\.2\.3-1-g[0-9a-f]{7} [0-9a-f]{40}$`},
		{"a tag", func() { run("git", "tag", "v1.3.0") }, `^v1\.3\.0 [0-9a-f]{40}$`},
		{"a module's tag", func() { commit("more"); run("git", "tag", "platform/v2.0.0") }, `^v1\.3\.0-1-g[0-9a-f]{7,} [0-9a-f]{40}$`},
		{"a change", func() {
			if err := os.WriteFile(filepath.Join(dir, "scripts/version.sh"), append(script, '\n'), 0o755); err != nil {
				t.Fatal(err)
			}
		}, `^v1\.3\.0-1-g[0-9a-f]{7,}-dirty [0-9a-f]{40}$`},
	} {
		step.do()
		if got := run("scripts/version.sh"); !regexp.MustCompile(step.want).MatchString(got) {
			t.Errorf("%s: %q, must match %s", step.name, got, step.want)
		}
	}
}

// Programs of the Makefile and of the native stack say their version.
func TestBuiltProgramSaysItsVersion(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../../Makefile", "release.sh", "../release.sh"} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "scripts/version.sh flags") {
			t.Errorf("%s links programs without scripts/version.sh flags (error: %v)", file, err)
		}
	}
	flags, err := exec.Command("../version.sh", "flags").Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(flags) == 0 {
		t.Skip("this is not a checkout")
	}
	program := filepath.Join(t.TempDir(), "migrate")
	if out, err := exec.Command("go", "build", "-ldflags", strings.TrimSpace(string(flags)), "-o", program, "../../migrations/cmd/migrate").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program, "--version").Output()
	if err != nil || strings.Contains(string(out), "unknown") || !regexp.MustCompile(`revision [0-9a-f]{40}`).Match(out) {
		t.Errorf("--version prints %q (error: %v)", out, err)
	}
}
