package documents

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// publicCode is publiccode.yml, as https://yml.publiccode.tools has it in version 0.5.
type publicCode struct {
	Version           string `yaml:"publiccodeYmlVersion"`
	Name, URL         string
	SoftwareVersion   string   `yaml:"softwareVersion"`
	ReleaseDate       string   `yaml:"releaseDate"`
	Platforms         []string `yaml:"platforms"`
	Categories        []string `yaml:"categories"`
	DevelopmentStatus string   `yaml:"developmentStatus"`
	SoftwareType      string   `yaml:"softwareType"`
	IntendedAudience  struct {
		Scope []string
	} `yaml:"intendedAudience"`
	Description map[string]struct {
		LocalisedName    string `yaml:"localisedName"`
		ShortDescription string `yaml:"shortDescription"`
		LongDescription  string `yaml:"longDescription"`
		Documentation    string
		APIDocumentation string `yaml:"apiDocumentation"`
		Features         []string
	}
	Legal       struct{ License string }
	Maintenance struct {
		Type     string
		Contacts []struct{ Name, Email, Affiliation string }
	}
	Localisation struct {
		Ready     bool     `yaml:"localisationReady"`
		Languages []string `yaml:"availableLanguages"`
	}
	DependsOn struct {
		Open []struct {
			Name       string
			VersionMin string `yaml:"versionMin"`
		}
	} `yaml:"dependsOn"`
}

// The catalogue of public software gets what its standard demands, in the languages
// of the page, and with the licence and the release that the repository has.
func TestPublicCode(t *testing.T) {
	t.Parallel()
	var p publicCode
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "publiccode.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"name": p.Name, "url": p.URL} {
		if value == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for name, is := range map[string]bool{
		"publiccodeYmlVersion": p.Version == "0.5",
		"platforms":            len(p.Platforms) > 0,
		"developmentStatus":    slices.Contains([]string{"concept", "development", "beta", "stable", "obsolete"}, p.DevelopmentStatus),
		"softwareType":         p.SoftwareType == "standalone/web",
		"maintenance.type":     p.Maintenance.Type == "internal" || p.Maintenance.Type == "community",
		"maintenance.contacts": len(p.Maintenance.Contacts) > 0 && p.Maintenance.Contacts[0].Name != "",
		"localisationReady":    p.Localisation.Ready,
		"legal.license":        p.Legal.License == "Apache-2.0" && strings.Contains(read(t, "LICENSE"), "Apache License\n                           Version 2.0"),
	} {
		if !is {
			t.Errorf("%s must be as the standard, or the repository, has it", name)
		}
	}
	languages := []string{"en", "id"}
	if !slices.Equal(p.Localisation.Languages, languages) {
		t.Errorf("availableLanguages are %v, must be %v", p.Localisation.Languages, languages)
	}
	for _, language := range languages {
		d := p.Description[language]
		if short := utf8.RuneCountInString(d.ShortDescription); short == 0 || short > 150 {
			t.Errorf("%s: shortDescription has %d characters, must have 1 to 150", language, short)
		}
		if long := utf8.RuneCountInString(d.LongDescription); long < 150 || long > 10000 {
			t.Errorf("%s: longDescription has %d characters, must have 150 to 10,000", language, long)
		}
		if len(d.Features) < 5 {
			t.Errorf("%s: must have 5 features at least", language)
		}
		for _, address := range []string{d.Documentation, d.APIDocumentation} {
			if _, path, found := strings.Cut(address, "/main/"); found {
				exists(t, path)
			}
		}
	}
	p.checkRelease(t)
}

var released = regexp.MustCompile(`(?m)^## \[?v?(\d+\.\d+\.\d+)\]? - (\d{4}-\d\d-\d\d)$`)

// checkRelease compares with the newest release of the changelog, if there is one.
func (p publicCode) checkRelease(t *testing.T) {
	t.Helper()
	newest := released.FindStringSubmatch(read(t, "CHANGELOG.md"))
	if newest == nil {
		newest = []string{"", "", ""}
	}
	if p.SoftwareVersion != newest[1] || p.ReleaseDate != newest[2] {
		t.Errorf("softwareVersion %q and releaseDate %q, must be %q and %q, as the changelog has them",
			p.SoftwareVersion, p.ReleaseDate, newest[1], newest[2])
	}
	if _, err := time.Parse(time.DateOnly, p.ReleaseDate); p.ReleaseDate != "" && err != nil {
		t.Error(err)
	}
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/helm/cityconnect/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if newest[1] != "" && chart.Version != newest[1] || chart.AppVersion != "v"+chart.Version {
		t.Errorf("the chart has version %q and appVersion %q, must be %q, as the changelog has it, and v%[3]s", chart.Version, chart.AppVersion, newest[1])
	}
	for manual, command := range map[string]string{"docs/compose.md": "git checkout v", "docs/kubernetes.md": "charts/cityconnect --version "} {
		if !strings.Contains(read(t, manual), command+chart.Version) {
			t.Errorf("%s does not install with %q", manual, command+chart.Version)
		}
	}
}

// The chart asks for the images that the workflow pushes, and those that its manual
// has built: the tag is the chart's appVersion, which is the name of the git tag.
func TestImageTagsAgree(t *testing.T) {
	t.Parallel()
	for file, pattern := range map[string]string{
		".github/workflows/release.yml": `tags: ghcr\.io/\$\{\{ github\.repository \}\}/\$\{\{ matrix\.program \}\}:\$\{\{ github\.ref_name \}\}\n`,
		"scripts/publish-chart.sh":      `--version "\$\{1#v\}" --app-version "\$1"`,
		"docs/kubernetes.md":            `tag=\$\(sed -n 's/\^appVersion: \\\(\[\^ \]\*\\\)\.\*/\\1/p' deploy/helm/cityconnect/Chart\.yaml\)`,
	} {
		if !regexp.MustCompile(pattern).MatchString(read(t, file)) {
			t.Errorf("%s has not %s", file, pattern)
		}
	}
	if written := regexp.MustCompile(`(?m)^\s*(image:.*)?\btag: .*$`).FindString(read(t, "docs/kubernetes.md")); written != "" {
		t.Errorf("docs/kubernetes.md has a tag of its own in the values: %s", written)
	}
}

// Issue forms have what GitHub demands of them: otherwise it shows none.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d forms, error %v", len(files), err)
	}
	kinds := []string{"markdown", "textarea", "input", "dropdown", "checkboxes"}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Labels            []string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Description, Value, Render string
					Options                           []string
				}
				Validations struct{ Required bool }
			}
		}
		decoder := yaml.NewDecoder(strings.NewReader(read(t, ".github/ISSUE_TEMPLATE/"+name)))
		decoder.KnownFields(true)
		if err := decoder.Decode(&form); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: must have name, description and body", name)
		}
		seen := map[string]bool{}
		for i, field := range form.Body {
			if !slices.Contains(kinds, field.Type) {
				t.Errorf("%s %d: type %q is unknown", name, i, field.Type)
			}
			if field.Type != "markdown" && (field.Attributes.Label == "" || field.ID == "" || seen[field.ID]) {
				t.Errorf("%s %d: must have a label, and an id of its own", name, i)
			}
			seen[field.ID] = true
		}
	}
}

// The development container has the versions that the project needs, runs as root,
// because the scripts install servers, and opens the page's port.
func TestDevelopmentContainer(t *testing.T) {
	t.Parallel()
	var c struct {
		Image        string
		Features     map[string]struct{ Version string }
		RemoteUser   string
		PostCreate   string `json:"postCreateCommand"`
		ForwardPorts []int
	}
	if err := json.Unmarshal([]byte(read(t, ".devcontainer/devcontainer.json")), &c); err != nil {
		t.Fatal(err)
	}
	workspace := read(t, "go.work")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(workspace)[1]
	if !strings.Contains(c.Image, "/go:") || !strings.Contains(c.Image, "-"+version+"-bookworm") {
		t.Errorf("image is %s, must have Go %s on Debian 12", c.Image, version)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(c.Features)), func(name string) bool { return strings.Contains(name, "/node:") }) {
		t.Error("must have Node.js")
	}
	if c.RemoteUser != "root" || !slices.Equal(c.ForwardPorts, []int{8080}) {
		t.Errorf("user %q with ports %v, must be root with 8080", c.RemoteUser, c.ForwardPorts)
	}
	program, _, _ := strings.Cut(c.PostCreate, " ")
	exists(t, program)
}

func exists(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		t.Error(err)
	}
}

// Every manual is linked from the list of them.
func TestEveryManualIsListed(t *testing.T) {
	t.Parallel()
	list := read(t, "docs/README.md")
	for _, pattern := range []string{"docs/*.md", "docs/id/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			link := strings.TrimPrefix(filepath.ToSlash(file), root+"/docs/")
			if link != "README.md" && !strings.Contains(list, "]("+link+")") {
				t.Errorf("docs/README.md must link %s", link)
			}
		}
	}
}
