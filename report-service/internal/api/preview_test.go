package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
)

// A preview has the whole address of the report and of its first photo: programs that
// show links take no other.
func TestPreview(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.fileAbout(token(t, "ann", auth.Resident), 2, "Dark <b>lamp</b>")
	preview := func(host, scheme, languages, query string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/reports/"+id.String()+"/preview"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("X-Forwarded-Proto", scheme)
		req.Header.Set("Accept-Language", languages)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("status %d, error %v", res.StatusCode, err)
		}
		return string(body)
	}
	html := preview("city.example.org", "https", "", "")
	if !strings.Contains(html, `<meta property="og:url" content="https://city.example.org/reports/`+id.String()+`">`) ||
		!strings.Contains(html, `content="summary"`) || strings.Contains(html, "og:image") || strings.Contains(html, "<b>") {
		t.Errorf("without a photo: %s", html)
	}
	photo := uuid.New()
	if _, err := s.pool.Exec(t.Context(), `
		insert into photos (id, report_id, alt, official, bytes, digest, upload, state, width, height, created_at, changed_at)
		values ($1, $2, '', false, 1, '', '', 'ready', 1, 1, now(), now())`, photo, id); err != nil {
		t.Fatal(err)
	}
	html = preview("127.0.0.1:8080", "", "", "")
	if !strings.Contains(html, `<meta property="og:image" content="http://127.0.0.1:8080/photos/`+photo.String()+`/1024.jpg">`) {
		t.Errorf("with a photo: %s", html)
	}
	for _, tt := range []struct{ languages, query, want string }{
		{"", "", `content="Received · Street lights and signals · Jl. Asia Afrika 8 · `},
		{"id-ID,id;q=0.9,en;q=0.8", "", `content="Diterima · Lampu jalan dan lampu lalu lintas · Jl. Asia Afrika 8 · `},
		{"id", "?lang=en", `content="Received · `},
		{"", "?lang=id", `<meta property="og:locale" content="id_ID">`},
	} {
		if html := preview("city.example.org", "https", tt.languages, tt.query); !strings.Contains(html, tt.want) {
			t.Errorf("for %q%s: %s, want %s", tt.languages, tt.query, html, tt.want)
		}
	}
}
