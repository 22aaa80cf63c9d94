package documents

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A stack is what docker-compose.yml has.
type stack struct {
	Name     string
	Services map[string]struct{ Image string }
	Volumes  map[string]any
}

// Commands of the manuals for Docker name services, volumes and images of the stack, and are
// shell.
func TestComposeCommands(t *testing.T) {
	t.Parallel()
	var have stack
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &have); err != nil {
		t.Fatal(err)
	}
	files := []string{"README.md", "README.id.md"}
	for _, pattern := range []string{"docs/*.md", "docs/id/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			files = append(files, strings.TrimPrefix(file, root+"/"))
		}
	}
	commands, volumes := 0, 0
	for _, file := range files {
		text := read(t, file)
		for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(block[1])
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %s%s", file, out, block[1])
			}
		}
		for _, command := range regexp.MustCompile("docker compose ([^`\n|&;<>()]+)").FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", ""), -1) {
			for _, service := range servicesOf(strings.Fields(command[1])) {
				commands++
				if _, ok := have.Services[service]; !ok {
					t.Errorf("%s: %q names %s, which is not a service of the stack", file, command[0], service)
				}
			}
		}
		for _, volume := range regexp.MustCompile(`(?:-v|volume rm) `+have.Name+`_([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			volumes++
			if _, ok := have.Volumes[volume[1]]; !ok {
				t.Errorf("%s: the stack has no volume %s", file, volume[1])
			}
		}
		for _, image := range regexp.MustCompile(`docker run [^\n]* (nginx:[0-9.]+) `).FindAllStringSubmatch(text, -1) {
			if want := have.Services["gateway"].Image; !strings.Contains(want, ":-"+image[1]+"}") {
				t.Errorf("%s: runs %s, the stack has %s", file, image[1], want)
			}
		}
	}
	if commands < 40 || volumes < 4 {
		t.Errorf("found %d services and %d volumes in commands: they are looked for in the wrong way", commands, volumes)
	}
}

// servicesOf returns the services that a command of Compose names.
func servicesOf(words []string) []string {
	var services []string
	subcommand := ""
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--since" || word == "--tail" || word == "--entrypoint" || word == "--profile" || word == "--scale":
			i++ // its value
		case strings.HasPrefix(word, "-"):
		case subcommand == "":
			subcommand = word
		case subcommand == "exec" || subcommand == "run": // the rest is the container's
			return []string{word}
		default:
			services = append(services, word)
		}
	}
	return services
}
