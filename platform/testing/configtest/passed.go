package configtest

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oasdiff/yaml"
)

const repository = "../../../"

var (
	// ownInExample are those that each stack sets by itself, because the addresses
	// in them differ.
	ownInExample = []string{"HTTP_ADDR", "OPERATIONS_ADDR", "DATABASE_URL", "AUTH_DEV_NETWORK"}
	// ofTheChart are those that its templates set, and that values cannot.
	ofTheChart = []string{"HTTP_ADDR", "OPERATIONS_ADDR", "PHOTO_STORE", "DRAIN_WINDOW", "REPORT_SERVICE_URL"}
)

// Passed makes sure that each variable of a program reaches it: that Compose passes
// it to the program's container, that the chart takes it, and that .env.example
// names it. One that holds a secret must be taken from a file as well, in each of
// them: that is what the manual recommends.
func Passed(t *testing.T, program string, config reflect.Type) {
	t.Helper()
	variables := make(map[string]string)
	collect(config, variables)
	if len(variables) < 10 {
		t.Fatalf("%s has %d variables", program, len(variables))
	}
	compose, secrets := composeEnvironment(t, program), chartSecrets(t)
	chart := find(readFile(t, schemaFile), `"([A-Z][A-Z0-9_]+)": \{"\$ref": "#/definitions/value"\}`)
	example := find(readFile(t, ".env.example"), `(?m)^#?([A-Z][A-Z0-9_]+)=`)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		file, isSecret := name+"_FILE", secrets[name]
		switch {
		case isSecret && !compose[file]:
			t.Errorf("docker-compose.yml does not pass %s to %s", file, program)
		case !isSecret && !compose[name]:
			t.Errorf("docker-compose.yml does not pass %s to %s", name, program)
		}
		if !isSecret && !chart[name] && !slices.Contains(ofTheChart, name) {
			t.Errorf("the chart does not know %s of %s", name, program)
		}
		if !example[name] && !example[file] && !slices.Contains(ownInExample, name) {
			t.Errorf(".env.example does not have %s of %s", name, program)
		}
		if example[file] && !compose[file] {
			t.Errorf(".env.example offers %s, which docker-compose.yml does not pass to %s", file, program)
		}
	}
}

// composeEnvironment returns the names that Compose's file has in the environment of
// a container.
func composeEnvironment(t *testing.T, program string) map[string]bool {
	t.Helper()
	var compose struct {
		Services map[string]struct {
			Environment map[string]any `json:"environment"`
		} `json:"services"`
	}
	if _, err := yaml.Unmarshal([]byte(readFile(t, "docker-compose.yml")), &compose, yaml.DecodeOpts{}); err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	names := make(map[string]bool)
	for name := range compose.Services[program].Environment {
		names[name] = true
	}
	return names
}

// schemaFile says which values the chart takes.
const schemaFile = "deploy/helm/cityconnect/values.schema.json"

// chartSecrets returns the variables that the chart takes from a secret, as files.
func chartSecrets(t *testing.T) map[string]bool {
	t.Helper()
	_, list, _ := strings.Cut(readFile(t, schemaFile), `"secretFiles"`)
	list, _, _ = strings.Cut(list, "]")
	names := find(list, `"([A-Z][A-Z0-9_]+)"`)
	if len(names) < 8 {
		t.Fatalf("%s has %d secrets", schemaFile, len(names))
	}
	return names
}

// find returns what the group of a pattern matches in text.
func find(text, pattern string) map[string]bool {
	names := make(map[string]bool)
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names[found[1]] = true
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(repository + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
