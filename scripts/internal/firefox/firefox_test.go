package firefox

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Errors of a page are reported, also after the page is left; what a person does
// reaches it as it would from a person.
func TestTab(t *testing.T) {
	if testing.Short() {
		t.Skip("make check installs Firefox")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<script src=/faults.js></script><script>inline()</script><a href=/form>Form</a>`)
		case "/faults.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, `console.error('on the console'); console.warn('no fault'); setTimeout(() => Promise.reject(new Error('rejected'))); undefined.x`)
		case "/form":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<label>Name<input value=before></label><input type=file><p>`, r.Header.Get("Accept-Language"))
		}
	}))
	defer server.Close()
	tab, err := Start(t.Context(), "id", 390, 844)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	photo := filepath.Join(t.TempDir(), "photo.jpg")
	if err := os.WriteFile(photo, []byte("photo"), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := tab.Do(t.Context(),
		Go(server.URL), Click("a", "Form"),
		See("p", "id"), Fill("Name", "Ayu é"), Files("input[type=file]", photo),
		Until(`innerWidth === 390 && innerHeight === 844 && navigator.language === 'id'`),
	); err != nil {
		t.Fatal(err)
	}
	got, err := Ask[[]string](t.Context(), tab, `[...document.querySelectorAll('input')].map((i) => i.files?.[0]?.name ?? i.value)`)
	if want := []string{"Ayu é", "photo.jpg"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the fields have %q (error: %v), must be %q", got, err, want)
	}
	faults, err := tab.Faults(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(faults, "\n")
	for _, fault := range []string{"on the console", "rejected", "undefined", "script-src-elem inline"} {
		if !strings.Contains(all, fault) {
			t.Errorf("%q is not among the faults:\n%s", fault, all)
		}
	}
	if strings.Contains(all, "no fault") {
		t.Errorf("a warning is among the faults:\n%s", all)
	}
}
