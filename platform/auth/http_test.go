package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

// app is a small service behind the middleware.
func app(t *testing.T, cfg auth.Config) http.Handler {
	t.Helper()
	v, errs, mux := newVerifier(t, cfg), service.Errors{Log: zerolog.Nop()}, http.NewServeMux()
	mux.HandleFunc("POST /session", errs.Handle(v.CreateSession))
	mux.HandleFunc("GET /session", errs.Handle(v.ReadSession))
	mux.HandleFunc("DELETE /session", errs.Handle(v.DeleteSession))
	mux.HandleFunc("POST /dev/token", errs.Handle(v.IssueDevToken))
	whoami := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := auth.From(r.Context())
		_, _ = w.Write([]byte(p.ID))
	})
	mux.Handle("/anyone", whoami)
	mux.Handle("/signed-in", auth.Require()(whoami))
	mux.Handle("/officials", auth.Require(auth.Official)(whoami))
	return v.Middleware(mux)
}

// ask sends a request; header alternates names and values.
func ask(h http.Handler, method, path, body string, header ...string) *http.Response {
	r := httptest.NewRequest(method, "http://city.test"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func problemName(t *testing.T, resp *http.Response) string {
	t.Helper()
	if resp.Header.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	var p service.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Status != resp.StatusCode {
		t.Errorf("problem %+v, error %v; want one with status %d", p, err, resp.StatusCode)
	}
	_, name, _ := strings.Cut(p.Type, "#")
	return name
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	h := app(t, config())
	good := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(nil))
	expired := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}))
	const authz, cookie, name = "Authorization", "Cookie", auth.CookieName + "="

	for _, tt := range []struct {
		name, method, path string
		header             []string
		status             int
		problem            string
	}{
		{"anonymous", "GET", "/anyone", nil, 200, ""},
		{"anonymous where sign-in is wanted", "GET", "/signed-in", nil, 401, "unauthenticated"},
		{"bearer", "GET", "/signed-in", []string{authz, "Bearer " + good}, 200, ""},
		{"scheme in lower case", "GET", "/signed-in", []string{authz, "bearer " + good}, 200, ""},
		{"another scheme", "GET", "/anyone", []string{authz, "Basic " + good}, 401, "invalid-token"},
		{"wrong role", "GET", "/officials", []string{authz, "Bearer " + good}, 403, "forbidden"},
		{"expired, though nobody asked", "GET", "/anyone", []string{authz, "Bearer " + expired}, 401, "invalid-token"},
		{"token in the URL is none", "GET", "/signed-in?access_token=" + good, nil, 401, "unauthenticated"},
		{"cookie", "GET", "/signed-in", []string{cookie, name + good}, 200, ""},
		{"expired cookie", "GET", "/anyone", []string{cookie, name + expired}, 401, "invalid-token"},
		{"header before cookie", "GET", "/signed-in", []string{cookie, name + good, authz, "Bearer " + expired}, 401, "invalid-token"},
		{"cookie from this site", "POST", "/signed-in", []string{cookie, name + good, "Sec-Fetch-Site", "same-origin"}, 200, ""},
		{"cookie from another site", "POST", "/signed-in", []string{cookie, name + good, "Sec-Fetch-Site", "cross-site"}, 403, "cross-site"},
		{"cookie from another origin", "DELETE", "/session", []string{cookie, name + good, "Origin", "https://evil.test"}, 403, "cross-site"},
		{"cookie and a link from another site", "GET", "/signed-in", []string{cookie, name + good, "Sec-Fetch-Site", "cross-site"}, 200, ""},
		{"bearer from another site", "POST", "/signed-in", []string{authz, "Bearer " + good, "Sec-Fetch-Site", "cross-site"}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp := ask(h, tt.method, tt.path, "", tt.header...)
			if got := problemName(t, resp); resp.StatusCode != tt.status || got != tt.problem {
				t.Errorf("got %d %q, want %d %q", resp.StatusCode, got, tt.status, tt.problem)
			}
			if got := resp.Header.Get("WWW-Authenticate"); (got != "") != (tt.status == 401) {
				t.Errorf("WWW-Authenticate %q beside status %d", got, tt.status)
			}
			removed := len(resp.Cookies()) == 1 && resp.Cookies()[0].MaxAge < 0
			if want := tt.name == "expired cookie"; removed != want {
				t.Errorf("cookie removed: %t, want %t", removed, want)
			}
		})
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	h := app(t, config())
	good := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(nil))

	resp := ask(h, "POST", "/session", "", "Authorization", "Bearer "+good, "X-Forwarded-Proto", "https")
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		t.Fatalf("POST /session: got %d with %d cookies", resp.StatusCode, len(resp.Cookies()))
	}
	c := resp.Cookies()[0]
	if c.Name != auth.SecureCookieName || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || !c.Secure ||
		c.MaxAge < 3500 || c.MaxAge > 3600 {
		t.Errorf("cookie attributes: %+v", c)
	}
	resp = ask(h, "GET", "/signed-in", "", "Cookie", c.Name+"="+c.Value, "X-Forwarded-Proto", "https")
	if resp.StatusCode != 200 {
		t.Errorf("with the cookie: got %d", resp.StatusCode)
	}
	var who auth.Session
	resp = ask(h, "GET", "/session", "", "Cookie", c.Name+"="+c.Value, "X-Forwarded-Proto", "https")
	if err := json.NewDecoder(resp.Body).Decode(&who); err != nil || who.Sub != "u-1" || who.Role != auth.Resident {
		t.Errorf("GET /session: got %+v, error %v", who, err)
	}
	if resp := ask(h, "GET", "/session", ""); resp.StatusCode != 204 {
		t.Errorf("GET /session of nobody: got %d", resp.StatusCode)
	}
	for proto, want := range map[string][]string{"http": {auth.CookieName}, "https, http": {auth.SecureCookieName, auth.CookieName}} {
		resp = ask(h, "DELETE", "/session", "", "Cookie", c.Name+"="+c.Value, "X-Forwarded-Proto", proto)
		var removed []string
		for _, c := range resp.Cookies() {
			if c.MaxAge < 0 {
				removed = append(removed, c.Name)
			}
		}
		if resp.StatusCode != 204 || !slices.Equal(removed, want) || resp.Header.Get("Clear-Site-Data") != `"storage"` {
			t.Errorf("DELETE /session over %s: got %d with %v; want 204, %q removed and the storage cleared", proto, resp.StatusCode, resp.Header, want)
		}
	}
	if c := ask(h, "POST", "/session", "", "Authorization", "Bearer "+good).Cookies()[0]; c.Secure || c.Name != auth.CookieName {
		t.Errorf("without TLS the cookie is %+v, and no browser would send it back", c)
	}
	// Over TLS, a cookie that another host of the same domain may have planted does not count.
	for cookies, want := range map[string]int{auth.CookieName + "=" + good: 401, auth.CookieName + "=planted; " + auth.SecureCookieName + "=" + good: 200} {
		if resp := ask(h, "GET", "/signed-in", "", "Cookie", cookies, "X-Forwarded-Proto", "https"); resp.StatusCode != want {
			t.Errorf("with the cookies %.40s…: got %d, want %d", cookies, resp.StatusCode, want)
		}
	}
	for name, header := range map[string][]string{"anonymous": nil, "by cookie": {"Cookie", c.Name + "=" + c.Value}} {
		if resp := ask(h, "POST", "/session", "", header...); problemName(t, resp) != "unauthenticated" {
			t.Errorf("POST /session %s: got %d", name, resp.StatusCode)
		}
	}
	long := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(jwt.MapClaims{"groups": strings.Repeat("g", 4000)}))
	if resp := ask(h, "POST", "/session", "", "Authorization", "Bearer "+long); problemName(t, resp) != "invalid-input" {
		t.Errorf("POST /session with a token that fits no cookie: got %d", resp.StatusCode)
	}
}

// Nobody loses a session because the issuer cannot be asked.
func TestIssuerAwayKeepsTheCookie(t *testing.T) {
	t.Parallel()
	is := newIssuer(t)
	is.away.Store(true)
	token := sign(t, jwt.SigningMethodES256, "k1", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), claims(nil))
	resp := ask(app(t, is.config()), "GET", "/signed-in", "", "Cookie", auth.CookieName+"="+token)
	if name := problemName(t, resp); resp.StatusCode != 503 || name != "unavailable" || resp.Header.Get("Retry-After") != "10" {
		t.Errorf("got %d %q with %v, want 503 and when to come back", resp.StatusCode, name, resp.Header)
	}
	if len(resp.Cookies()) != 0 || resp.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("the answer takes the sign-in away: %v", resp.Header)
	}
}

// The development issuer answers under the names of this machine, and under
// those that the operator chose: a page that made its own name lead here, a
// tunnel or a proxy has another one.
func TestDevHosts(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Mode, cfg.Addr, cfg.DevHosts = auth.Dev, "127.0.0.1:3002", []string{"city.example", "192.168.1.7"}
	h := app(t, cfg)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200,
		"city.example": 200, "City.Example:8443": 200, "192.168.1.7:8080": 200,
		"evil.example": 403, "localhost.evil.example": 403, "10.0.0.1": 403, "": 403,
	} {
		r := httptest.NewRequest("POST", "http://x/dev/token", strings.NewReader(`{"name":"Ana","role":"resident"}`))
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: status %d, want %d", host, w.Code, want)
		}
	}
}

func TestIssueDevToken(t *testing.T) {
	t.Parallel()
	if resp := ask(app(t, config()), "POST", "/dev/token", `{"name":"Ana","role":"operator"}`); problemName(t, resp) != "not-found" {
		t.Fatalf("with AUTH_MODE=jwt: got %d, want no issuer", resp.StatusCode)
	}
	cfg := config()
	cfg.Mode, cfg.Addr = auth.Dev, "127.0.0.1:3002"
	cfg.DevHosts = []string{"city.test"} // which ask asks for
	h, v := app(t, cfg), newVerifier(t, cfg)
	for _, tt := range []struct {
		body, problem, sub string
		role               auth.Role
	}{
		{`{"name":"Ana","role":"resident"}`, "", "", auth.Resident},
		{`{"name":"Olu","role":"official","sub":"olu"}`, "", "olu", auth.Official},
		{`{"name":"` + strings.Repeat("💡", 200) + `","role":"resident"}`, "", "", auth.Resident},
		{`{"name":"\u200b\ufe0f","role":"resident"}`, "invalid-input", "", ""},
		{`{"name":"","role":"mayor","sub":"a\nb"}`, "invalid-input", "", ""},
		{`{"name":"Ana","role":"resident","admin":true}`, "malformed-body", "", ""},
		{`{`, "malformed-body", "", ""},
	} {
		resp := ask(h, "POST", "/dev/token", tt.body)
		if tt.problem != "" {
			if got := problemName(t, resp); got != tt.problem {
				t.Errorf("%s: got %d %q, want %q", tt.body, resp.StatusCode, got, tt.problem)
			}
			continue
		}
		var token auth.DevToken
		if err := json.NewDecoder(resp.Body).Decode(&token); err != nil {
			t.Fatal(err)
		}
		p, err := v.Verify(t.Context(), token.AccessToken)
		if err != nil || p.ID != token.Sub || p.Role != tt.role || tt.sub != "" && p.ID != tt.sub {
			t.Errorf("%s: got %+v, %v, sub %q", tt.body, p, err, token.Sub)
		}
		left := time.Duration(token.ExpiresIn)*time.Second - time.Until(p.Expires)
		if token.TokenType != "Bearer" || left.Abs() > time.Minute {
			t.Errorf("%s: %s for %d s, expires %v", tt.body, token.TokenType, token.ExpiresIn, p.Expires)
		}
	}
}
