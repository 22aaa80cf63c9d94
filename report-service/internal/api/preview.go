package api

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// preview is the part of a report that its page has in the head, for search
// engines and for programs that show a link with a title: they run no scripts.
var preview = template.Must(template.New("preview").Parse(`<title>{{.Title}} · CityConnect</title>
<meta name="description" content="{{.Description}}">
<meta property="og:type" content="article">
<meta property="og:site_name" content="CityConnect">
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
// answer into the page at /reports/{id}; it is the same for everyone, and
// contains neither the reporter's name nor the votes.
func (h reportHandlers) previewReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.reports.Get(r.Context(), pathID(r), report.User{})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	photo := ""
	if len(view.Photos) > 0 {
		photo = fmt.Sprintf("/photos/%s/%d.jpg", view.Photos[0], previewSize)
	}
	err = preview.Execute(&body, struct {
		Title, Description, Origin, Photo string
		ID                                uuid.UUID
	}{view.Title, previewText(view), origin(r), photo, view.ID})
	if err != nil {
		return fmt.Errorf("write preview: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
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

// previewText returns in one line what the report is about, and where.
func previewText(v report.View) string {
	parts := []string{v.Category.Name}
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
