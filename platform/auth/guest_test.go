package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
)

const guestKey = "fedcba9876543210fedcba9876543210"

func withGuests() auth.Config {
	cfg := config()
	cfg.Guests, cfg.GuestKey = true, guestKey+",an earlier key of the city's guests"
	return cfg
}

const guestID = "0f8f1a1e-5f0e-4a5b-9a39-6a1f6a1b2c3d"

// guestToken is one of the city's, with changes.
func guestToken(t *testing.T, key string, changes jwt.MapClaims) string {
	t.Helper()
	c := claims(jwt.MapClaims{"iss": auth.GuestIssuer, "sub": guestID, "exp": time.Now().Add(auth.GuestLife).Unix(), "name": nil, "role": nil})
	for name, value := range changes {
		c[name] = value
	}
	return sign(t, jwt.SigningMethodHS256, "", []byte(key), c)
}

// A guest is a resident without a name, whatever the token says; only the city's keys make
// one, and only where there are guests.
func TestGuestToken(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, withGuests())
	for name, tt := range map[string]struct {
		token string
		ok    bool
	}{
		"guest":                        {guestToken(t, guestKey, nil), true},
		"earlier key":                  {guestToken(t, "an earlier key of the city's guests", nil), true},
		"claims a role":                {guestToken(t, guestKey, jwt.MapClaims{"role": "operator", "name": "Ana"}), true},
		"provider's key":               {guestToken(t, secret, nil), false},
		"other audience":               {guestToken(t, guestKey, jwt.MapClaims{"aud": "x"}), false},
		"expired":                      {guestToken(t, guestKey, jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}), false},
		"for a year":                   {guestToken(t, guestKey, jwt.MapClaims{"exp": time.Now().AddDate(1, 0, 0).Unix()}), false},
		"chosen subject":               {guestToken(t, guestKey, jwt.MapClaims{"sub": "ann"}), false},
		"city's key, account's issuer": {sign(t, jwt.SigningMethodHS256, "", []byte(guestKey), claims(nil)), false},
	} {
		p, err := v.Verify(t.Context(), tt.token)
		if (err == nil) != tt.ok || tt.ok && (p.Role != auth.Resident || p.Name != "" || !p.Guest || p.ID != guestID) {
			t.Errorf("%s: %+v, error %v; want accepted: %t", name, p, err, tt.ok)
		}
	}
	if p, err := newVerifier(t, config()).Verify(t.Context(), guestToken(t, guestKey, nil)); !errors.Is(err, auth.ErrToken) {
		t.Errorf("without guests: %+v, %v", p, err)
	}
	cfg := withGuests()
	cfg.GuestKey, cfg.Issuer = secret, auth.GuestIssuer
	if faults := cfg.Validate(); len(faults) != 2 {
		t.Errorf("the provider's key and the city's issuer: %v, want two faults", faults)
	}
}

func session(t *testing.T, res *http.Response) (s auth.Session) {
	t.Helper()
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A guest's cookie is renewed once it is a day old, and not when another request is
// answered. An account that signs in where a guest was is asked, until the cookie is gone.
func TestGuestSession(t *testing.T) {
	t.Parallel()
	h := app(t, withGuests())
	old := auth.CookieName + "=" + guestToken(t, guestKey, jwt.MapClaims{"exp": time.Now().Add(auth.GuestLife - 25*time.Hour).Unix()})
	fresh := auth.CookieName + "=" + guestToken(t, guestKey, nil)
	res := ask(h, "GET", "/session", "", "Cookie", old)
	if s := session(t, res); !s.Guest || s.Adoptable || s.Sub != guestID || len(res.Cookies()) != 1 || time.Until(s.ExpiresAt) < auth.GuestLife-time.Minute {
		t.Errorf("an old guest: %+v with %v, want a new cookie of 30 days", s, res.Cookies())
	}
	for path, cookie := range map[string]string{"/session": fresh, "/signed-in": old} {
		if res := ask(h, "GET", path, "", "Cookie", cookie); len(res.Cookies()) != 0 {
			t.Errorf("%s: %v, want no cookie", path, res.Cookies())
		}
	}

	account := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(nil))
	res = ask(h, "POST", "/session", "", "Cookie", strings.Replace(fresh, auth.CookieName, auth.SecureCookieName, 1), "Authorization", "Bearer "+account, "X-Forwarded-Proto", "https")
	names := make(map[string]string)
	for _, c := range res.Cookies() {
		names[c.Name] = c.Value
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("cookie %+v", c)
		}
	}
	if s := session(t, res); s.Guest || !s.Adoptable || names["__Host-cityconnect_guest"] == "" || names[auth.SecureCookieName] != account {
		t.Errorf("signed in: %+v with %v", s, names)
	}
	both := auth.CookieName + "=" + account + "; cityconnect_guest=" + strings.TrimPrefix(fresh, auth.CookieName+"=")
	if s := session(t, ask(h, "GET", "/session", "", "Cookie", both)); !s.Adoptable {
		t.Errorf("after it: %+v", s)
	}
	if res := ask(h, "DELETE", "/session", "", "Cookie", both); len(res.Cookies()) != 2 {
		t.Errorf("signed out: %v, want both removed", res.Cookies())
	}
	operator := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(jwt.MapClaims{"role": "operator"}))
	if s := session(t, ask(h, "POST", "/session", "", "Cookie", fresh, "Authorization", "Bearer "+operator)); s.Adoptable {
		t.Errorf("an operator takes over: %+v", s)
	}
}

// The token of a guest whom an account has taken over is refused, and its cookie removed;
// one that cannot be looked up now is kept.
func TestAdoptedGuest(t *testing.T) {
	t.Parallel()
	var fails error
	v := newVerifier(t, withGuests(), auth.RefuseAdopted(func(_ context.Context, id string) (bool, error) { return id == guestID, fails }))
	h := v.Middleware(http.NotFoundHandler())
	cookie := auth.CookieName + "=" + guestToken(t, guestKey, nil)
	res := ask(h, "GET", "/", "", "Cookie", cookie)
	if name := problemName(t, res); name != "guest-adopted" || res.StatusCode != 401 || len(res.Cookies()) != 1 || res.Cookies()[0].MaxAge > 0 {
		t.Errorf("%d %q with %v", res.StatusCode, name, res.Cookies())
	}
	if res := ask(h, "GET", "/", "", "Cookie", cookie, "Accept", "text/event-stream"); res.StatusCode != 401 || len(res.Cookies()) != 0 {
		t.Errorf("a stream: %d with %v, want the cookie kept for the page to ask", res.StatusCode, res.Cookies())
	}
	account := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(jwt.MapClaims{"sub": guestID}))
	if res := ask(h, "GET", "/", "", "Authorization", "Bearer "+account); res.StatusCode != 404 {
		t.Errorf("an account is asked for: %d", res.StatusCode)
	}
	fails = errors.New("the database is away")
	res = ask(h, "GET", "/", "", "Cookie", cookie)
	if name := problemName(t, res); name != "unavailable" || len(res.Cookies()) != 0 {
		t.Errorf("%d %q with %v, want the cookie kept", res.StatusCode, name, res.Cookies())
	}
}
