package wording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/cityconnect/cityconnect/notification-service/internal/web/app/src/lang"
)

// A Translation is what a city's folder says in a language that the tree does not have.
type Translation struct {
	Language Language
	// Parts are the words of mails and pushes, by the name mail, and those of the page's
	// parts, by theirs. They are whole: those of the city's first language fill the gaps.
	Parts   map[string]Words
	Missing int // words that the folder does not have, or has left empty
	Stale   int // words whose English has changed since they were translated
}

// Words are texts by their keys.
type Words map[string]string

const (
	mailPart = "mail"
	pagePart = "page"

	// commentMark begins the keys of the English beside each word. They are not words.
	commentMark = "//"

	// maxFaults is how many faults of a folder are named at once.
	maxFaults = 20
)

// own are words that describe a language itself, so that no other language can fill them.
var own = map[string]func(Language) string{
	"dir":           func(Language) string { return "ltr" },
	"language.name": func(l Language) string { return string(l) },
}

// pluralForms are the forms of words that differ by number, as Intl.PluralRules names them.
var pluralForms = []string{"zero", "one", "two", "few", "many", "other"}

var fileName = regexp.MustCompile(`^([a-z]+)\.([a-z]{2,3})\.json$`)

// partsIn returns the words of a language of the tree, by part.
func partsIn(language Language) map[string]Words {
	parts := make(map[string]Words)
	for _, files := range []fs.FS{lang.Files, wordFiles()} {
		names, err := fs.Glob(files, "*."+string(language)+".json")
		if err != nil {
			panic(err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(files, name)
			var words Words
			if err = errors.Join(err, json.Unmarshal(data, &words)); err != nil {
				panic(fmt.Sprintf("wording: %s: %v", name, err))
			}
			part, _, _ := strings.Cut(name, ".")
			parts[part] = words
		}
	}
	return parts
}

// ReadFolder reads and checks the translations in a folder, for a city of those
// languages; none for an empty name. Its error names each fault by file and key.
func ReadFolder(folder string, city []string) ([]Translation, error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	english := partsIn(English)
	read := make(map[Language]*Translation)
	var faults []string
	for _, entry := range entries {
		name := entry.Name()
		if filepath.Ext(name) != ".json" {
			continue
		}
		match := fileName.FindStringSubmatch(name)
		switch {
		case match == nil || english[match[1]] == nil:
			faults = append(faults, name+": must have the name of a file that `make words` writes")
			continue
		case slices.Contains(Languages, Language(match[2])):
			faults = append(faults, name+": must be in a language that CityConnect does not have")
			continue
		}
		part, language := match[1], Language(match[2])
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		var words Words
		if err := json.Unmarshal(data, &words); err != nil {
			faults = append(faults, fmt.Sprintf("%s: must be one object of texts: %v", name, err))
			continue
		}
		if read[language] == nil {
			read[language] = &Translation{Language: language, Parts: make(map[string]Words)}
		}
		read[language].Parts[part] = words
		for _, fault := range check(part, english[part], words) {
			faults = append(faults, name+": "+fault)
		}
	}
	if len(faults) == 0 && len(read) == 0 {
		faults = append(faults, "has no file such as page.xx.json")
	}
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", len(faults)-maxFaults))
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	first := partsIn(firstOf(city))
	translations := make([]Translation, 0, len(read))
	for _, t := range read {
		for part := range english {
			t.complete(part, english[part], first[part])
		}
		translations = append(translations, *t)
	}
	slices.SortFunc(translations, func(a, b Translation) int { return cmp.Compare(a.Language, b.Language) })
	return translations, nil
}

// firstOf returns the first of a city's languages that the tree has; English without one.
func firstOf(city []string) Language {
	for _, language := range city {
		if slices.Contains(Languages, Language(language)) {
			return Language(language)
		}
	}
	return English
}

// stemOf returns the part of key before its plural form, if the English words have
// forms of it; "" for other words.
func stemOf(english Words, key string) string {
	dot := max(strings.LastIndex(key, "."), 0)
	stem, form := key[:dot], strings.TrimPrefix(key[dot:], ".")
	if english[stem+".one"] == "" || english[stem+".other"] == "" || !slices.Contains(pluralForms, form) {
		return ""
	}
	return stem
}

// complete fills the gaps of a part, and counts them.
func (t *Translation) complete(part string, english, first Words) {
	said, whole := t.Parts[part], make(Words, len(english))
	for key, text := range english {
		if comment, ok := said[commentMark+key]; ok && comment != text && said[key] != "" {
			t.Stale++
		}
		stem := stemOf(english, key)
		switch otherwise := own[key]; {
		case otherwise != nil:
			whole[key] = cmp.Or(said[key], otherwise(t.Language))
			continue
		case stem != "":
			for _, form := range pluralForms {
				form, other := stem+"."+form, stem+".other"
				whole[form] = cmp.Or(said[form], said[other], first[form], first[other])
			}
		default:
			whole[key] = cmp.Or(said[key], first[key], text)
		}
		if said[key] == "" && (stem == "" || key == stem+".other") { // the form that every language has
			t.Missing++
		}
	}
	t.Parts[part] = whole
}

// check returns what is wrong with the words of a part.
func check(part string, english, words Words) (faults []string) {
	for key, text := range words {
		if strings.HasPrefix(key, commentMark) || text == "" {
			continue
		}
		stem := stemOf(english, key)
		source := cmp.Or(english[key], english[stem+".other"])
		must := "be a key that the English file has"
		if source != "" {
			if stem != "" {
				source = english[stem+".other"]
			}
			must = faultOf(part, key, source, text, stem != "" && key != stem+".other")
		}
		if must != "" {
			faults = append(faults, fmt.Sprintf("%q must %s", key, must))
		}
	}
	slices.Sort(faults)
	return faults
}

// faultOf returns what a text must be that it is not, or "". Plural forms other than the
// last one may leave placeholders out: "one report" needs no number.
func faultOf(part, key, english, text string, mayOmit bool) string {
	switch {
	case key == "dir":
		if text != "ltr" && text != "rtl" {
			return "be ltr or rtl"
		}
		return ""
	case part == mailPart && (key == "time" || key == "day"):
		at := time.Date(2026, 12, 31, 23, 58, 0, 0, time.UTC)
		if key == "day" {
			at = at.Truncate(24 * time.Hour)
		}
		if read, err := time.Parse(text, at.Format(text)); err != nil || !read.Equal(at) {
			return "be a layout of Go that has all of English's " + english
		}
		return ""
	case part == mailPart:
		if _, err := template.New("").Parse(text); err != nil {
			return "be a template of Go: " + strings.TrimPrefix(err.Error(), "template: :1: ")
		}
		return faultOfPlaceholders(templateAction, english, text, func(action string) bool { return !strings.HasPrefix(action, "{{.") }, "{{else}}", "{{end}}")
	}
	return faultOfPlaceholders(placeholder, english, text, func(string) bool { return mayOmit })
}

var (
	placeholder    = regexp.MustCompile(`\{\w+\}`)
	templateAction = regexp.MustCompile(`\{\{.*?\}\}`)
)

// faultOfPlaceholders compares those of a text with those of the English one. Those that
// optional reports may be left out, and extra ones may be used besides.
func faultOfPlaceholders(pattern *regexp.Regexp, english, text string, optional func(string) bool, extra ...string) string {
	has, wants := pattern.FindAllString(text, -1), pattern.FindAllString(english, -1)
	for _, one := range has {
		if !slices.Contains(wants, one) && !slices.Contains(extra, one) {
			return "not have " + one + ", which the English text does not have"
		}
	}
	for _, one := range wants {
		if !slices.Contains(has, one) && !optional(one) {
			return "have " + one + ", as the English text does"
		}
	}
	if rest := pattern.ReplaceAllString(text, ""); strings.ContainsAny(rest, "{}") {
		return "have no brace that belongs to no placeholder"
	}
	return ""
}

// WriteFolder writes the files of a language to translate into a folder, in the order of
// their keys: the English text under each key with "//" before it, and under the
// key what the folder has of it already.
func WriteFolder(folder string, to Language) error {
	if match := fileName.FindStringSubmatch("page." + string(to) + ".json"); match == nil || slices.Contains(Languages, to) {
		return fmt.Errorf("language %q: must be the ISO 639 code of one that CityConnect does not have", to)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	forms := formsOf(string(to))
	for part, english := range partsIn(English) {
		name := filepath.Join(folder, part+"."+string(to)+".json")
		var said Words
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &said)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		var lines []string
		write := func(key, source string) {
			text := map[string]string{commentMark + key: source, key: said[key]}
			for _, key := range []string{commentMark + key, key} {
				lines = append(lines, "  "+quote(key)+": "+quote(text[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(english)) {
			stem := stemOf(english, key)
			switch {
			case stem == "":
				write(key, english[key])
			case key == stem+".other":
				for _, form := range forms {
					write(stem+"."+form, cmp.Or(english[stem+"."+form], english[key]))
				}
			}
		}
		if err := os.WriteFile(name, []byte("{\n"+strings.Join(lines, ",\n")+"\n}\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// quote returns a text as JSON, with the letters <, > and & as they are.
func quote(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err) // of a text
	}
	return strings.TrimSpace(b.String())
}

// formsOf returns the plural forms that a language has: those of some numbers. A
// language that is unknown has those of English.
func formsOf(code string) []string {
	tag, err := language.Parse(code)
	if err != nil {
		return []string{"one", "other"}
	}
	names := map[plural.Form]string{plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other"}
	has := map[string]bool{names[plural.Cardinal.MatchPlural(tag, 1, 1, 1, 5, 5)]: true} // 1.5
	for n := range 201 {
		has[names[plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0)]] = true
	}
	has[names[plural.Cardinal.MatchPlural(tag, 1_000_000, 0, 0, 0, 0)]] = true
	return slices.DeleteFunc(slices.Clone(pluralForms), func(form string) bool { return !has[form] })
}

// Use adds the translations to the languages in which mails and pushes are written.
// Programs call it once, before anything is written.
func Use(translations []Translation, city []string, log zerolog.Logger) {
	fallback = firstOf(city)
	for _, t := range translations {
		Languages = append(Languages, t.Language)
		added[t.Language] = t.Parts[mailPart]
		log.Info().Str("language", string(t.Language)).Int("missing", t.Missing).Int("stale", t.Stale).
			Msg("the city's own words are read; missing ones are those of its first language")
	}
}
