package profile_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/profile"
	"github.com/cityconnect/cityconnect/platform/service"
)

func TestProfilesAreForOperators(t *testing.T) {
	t.Parallel()
	cfg := auth.Config{
		Mode: auth.Dev, Issuer: "test", Audience: "test", Secret: strings.Repeat("s", 32),
		RoleClaim: "role", Addr: "127.0.0.1:0",
	}
	verifier, err := auth.New(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	profile.Mount(r, verifier)
	r.Post("/dev/token", service.Errors{Log: zerolog.Nop()}.Handle(verifier.IssueDevToken))
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)

	for role, want := range map[string]int{"": 401, "resident": 403, "official": 403, "operator": 200} {
		for _, name := range []string{"heap", "allocs", "mutex", "block", "goroutine", "profile?seconds=1", "trace?seconds=0.01"} {
			if got := get(t, srv.URL, "/debug/pprof/"+name, role); got != want {
				t.Errorf("%s for %q: got %d, want %d", name, role, got, want)
			}
		}
	}
}

func get(t *testing.T, base, path, role string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		req.Header.Set("Authorization", "Bearer "+token(t, base, role))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func token(t *testing.T, base, role string) string {
	t.Helper()
	resp, err := http.Post(base+"/dev/token", "application/json", strings.NewReader(`{"name":"Olu","role":"`+role+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out.AccessToken
}
