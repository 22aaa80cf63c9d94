package documents

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A language that one place has, every place has. CONTRIBUTING.md, "Add a language", has the
// places.
func TestEveryLanguageIsEverywhere(t *testing.T) {
	t.Parallel()
	const lang = "../../notification-service/internal/web/app/src/lang/"
	places := make(map[string][]string)
	files := func(pattern string) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			_, language, _ := strings.Cut(name, ".")
			place := filepath.Join(filepath.Dir(file), strings.TrimSuffix(name, language)+"xx.json")
			places[place] = append(places[place], language)
		}
	}
	files(lang + "*.json")
	files("../../notification-service/internal/wording/words/*.json")
	for file, pattern := range map[string]string{
		lang + "i18n.ts": `ours: [^=]*= \{([^}]*)\}`,
		"../../notification-service/internal/wording/wording.go": `(?s)// The languages\.\nconst \(([^)]*)\)`,
		"../../report-service/internal/api/preview.go":           `(?s)var previewWords = [^{]*\{(.*?)\n\}`,
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindSubmatch(content)
		if found == nil {
			t.Fatalf("%s has no languages as in %s", file, pattern)
		}
		places[file] = nil
		for _, m := range regexp.MustCompile(`(?:^|[\s,"])([a-z]{2})(?:$|[",:])`).FindAllSubmatch(found[1], -1) {
			places[file] = append(places[file], string(m[1]))
		}
	}
	loads, err := filepath.Glob(lang + "*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range loads {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`([a-z]{2}): \(\) => import\(`).FindAllSubmatch(content, -1) {
			places[file+" (import)"] = append(places[file+" (import)"], "en", string(m[1]))
		}
	}
	all := make(map[string]bool)
	for _, languages := range places {
		for _, language := range languages {
			all[language] = true
		}
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		for language := range all {
			if !slices.Contains(places[place], language) {
				t.Errorf("%s has no %s", strings.TrimPrefix(place, "../../"), language)
			}
		}
	}
}
