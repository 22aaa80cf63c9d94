package api

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// preview is the part of a report that its page has in the head, for search
// engines and for programs that show a link with a title: they run no scripts.
var preview = template.Must(template.New("preview").Parse(`<title>{{.Title}} · CityConnect</title>
<meta name="description" content="{{.Description}}">
<meta property="og:type" content="article">
<meta property="og:site_name" content="CityConnect">
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

// previewReport handles GET /reports/{id}/preview. The gateway inserts the
// answer into the page at /reports/{id}; it is the same for everyone who reads the
// same language, and contains neither the reporter's name nor the votes.
func (h reportHandlers) previewReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.reports.Get(r.Context(), pathID(r), report.User{})
	if err != nil {
		return err
	}
	language := r.URL.Query().Get("lang")
	if language == "" {
		language = service.PreferredLanguage(r.Header.Get("Accept-Language"), "en", "id")
	}
	words := previewWords[language]
	var body bytes.Buffer
	photo := ""
	if len(view.Photos) > 0 {
		photo = fmt.Sprintf("/photos/%s/%d.jpg", view.Photos[0], previewSize)
	}
	err = preview.Execute(&body, struct {
		Title, Description, Locale, Origin, Photo string
		ID                                        uuid.UUID
	}{view.Title, words.describe(view), words.locale, origin(r), photo, view.ID})
	if err != nil {
		return fmt.Errorf("write preview: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", language)
	w.Header().Set("Vary", "Accept-Language")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // the client may have left
	return nil
}

// origin returns where the client finds the page: programs that show links take
// addresses with a host alone. It goes to who sent the host, and is kept nowhere.
func origin(r *http.Request) string {
	scheme, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	if scheme != "https" {
		scheme = "http"
	}
	return scheme + "://" + r.Host
}

// wordsOfPreview are the words that a preview has beside those of the report.
type wordsOfPreview struct {
	locale   string
	statuses map[report.Status]string
	// categories has the names in this language of the categories that the service starts
	// with; others are called as they are.
	categories map[string]string
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
		categories: map[string]string{
			"Roads and potholes":        "Jalan dan lubang",
			"Street lights and signals": "Lampu jalan dan lampu lalu lintas",
			"Waste and illegal dumping": "Sampah dan pembuangan liar",
			"Graffiti":                  "Grafiti",
			"Parks and trees":           "Taman dan pohon",
			"Water and drainage":        "Air dan saluran",
			"Sidewalks":                 "Trotoar",
			"Traffic and parking":       "Lalu lintas dan parkir",
			"Animals":                   "Hewan",
			"Public safety and noise":   "Keamanan umum dan kebisingan",
			"Other":                     "Lainnya",
		},
	},
}

// describe returns in one line the status of the report, what it is about, where, and
// its first words.
func (w wordsOfPreview) describe(v report.View) string {
	category := cmp.Or(w.categories[v.Category.Name], v.Category.Name)
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
