package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// preview is the part of a report that its page has in the head, for search
// engines and for programs that show a link with a title: they run no scripts.
var preview = template.Must(template.New("preview").Parse(`<title>{{.Title}} · {{.City}}</title>
<meta name="description" content="{{.Description}}">
<meta property="og:type" content="article">
<meta property="og:site_name" content="{{.City}}">
<meta property="og:locale" content="{{.Locale}}">
<meta property="og:title" content="{{.Title}}">
<meta property="og:description" content="{{.Description}}">
<meta property="og:url" content="{{.Origin}}/reports/{{.ID}}">
{{with .Photo}}<meta property="og:image" content="{{$.Origin}}{{.}}">
<meta name="twitter:card" content="summary_large_image">
{{else}}<meta name="twitter:card" content="summary">
{{end}}`))

// previewSize is the size of the picture in a preview: programs that show links leave
// out what is larger than some hundred kilobytes.
const previewSize = 1024

// previewLetters is how many letters of a description such programs show.
const previewLetters = 200

// Previews are what a report's page has in the head.
type Previews struct {
	City
	Reports *postgres.Reports
}

// Operations are those on previews.
func (h Previews) Operations() openapi.Operations {
	return openapi.Operations{"previewReport": {Handler: h.previewReport, Timeout: service.DefaultTimeout}}
}

// previewReport handles GET /reports/{id}/preview. The gateway inserts the
// answer into the page at /reports/{id}; it is the same for everyone who reads the
// same language, and contains neither the reporter's name nor the votes.
func (h Previews) previewReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.Reports.Get(r.Context(), pathID(r), report.User{})
	if err != nil {
		return err
	}
	category, err := h.Categories.Category(r.Context(), view.Category.ID)
	if err != nil {
		return err
	}
	language := r.URL.Query().Get("lang")
	if previewWords[language].locale == "" {
		language = service.PreferredLanguage(r.Header.Get("Accept-Language"), previewLanguages(h.Languages)...)
	}
	words := previewWords[language]
	name := category.Text(append([]string{language}, h.Languages...)...).Name
	var body bytes.Buffer
	photo := ""
	if len(view.Photos) > 0 {
		photo = fmt.Sprintf("/photos/%s/%d.jpg", view.Photos[0], previewSize)
	}
	err = preview.Execute(&body, struct {
		Title, Description, City, Locale, Origin, Photo string
		ID                                              uuid.UUID
	}{view.Title, words.describe(view, name), h.Name, words.locale, origin(r), photo, view.ID})
	if err != nil {
		return fmt.Errorf("write preview: %w", err)
	}
	w.Header().Set("Content-Language", language)
	w.Header().Set("Vary", "Accept-Language")
	w.Header().Set("Cache-Control", "no-store")
	return send(w, "text/html; charset=utf-8", body.Bytes())
}

// wordsOfPreview are the words that a preview has beside those of the report.
type wordsOfPreview struct {
	locale   string
	statuses map[report.Status]string
}

// previewWords are the words by language. The page has the same.
var previewWords = map[string]wordsOfPreview{
	"en": {
		locale: "en_US",
		statuses: map[report.Status]string{
			report.Pending: "Received", report.InProgress: "In progress", report.Resolved: "Resolved", report.Rejected: "Rejected",
		},
	},
	"id": {
		locale: "id_ID",
		statuses: map[report.Status]string{
			report.Pending: "Diterima", report.InProgress: "Dikerjakan", report.Resolved: "Selesai", report.Rejected: "Ditolak",
		},
	},
}

// AddPreviewWords adds the words of previews in the languages for which a folder has the
// page's words: those of statuses, in files such as page.xx.json. The page's service
// checks all files. Missing ones are those of the city's first language. Programs call it
// once, before they serve.
func AddPreviewWords(folder string, city []string) error {
	first := previewWords[previewLanguages(city)[0]]
	files, err := filepath.Glob(filepath.Join(folder, "page.*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var page map[string]string
		if err := json.Unmarshal(data, &page); err != nil {
			return fmt.Errorf("%s: must be one object of texts: %w", filepath.Base(file), err)
		}
		language := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "page."), ".json")
		statuses := maps.Clone(first.statuses)
		for status, text := range statuses {
			statuses[status] = cmp.Or(page["status."+string(status)], text)
		}
		previewWords[language] = wordsOfPreview{language, statuses}
	}
	return nil
}

// previewLanguages returns those of a city's languages for which there are words, and
// then the others for which there are.
func previewLanguages(city []string) []string {
	known := slices.DeleteFunc(slices.Clone(city), func(language string) bool { return previewWords[language].locale == "" })
	return append(known, slices.Sorted(maps.Keys(previewWords))...)
}

// describe returns in one line the status of the report, the name of its category,
// where it is, and its first words.
func (w wordsOfPreview) describe(v report.View, category string) string {
	parts := []string{w.statuses[v.Status], category}
	for _, part := range []string{v.Address, strings.Join(strings.Fields(v.Description), " ")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := []rune(strings.Join(parts, " · "))
	if len(text) > previewLetters {
		return string(text[:previewLetters-1]) + "…"
	}
	return string(text)
}
