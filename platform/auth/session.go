package auth

import (
	"net/http"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
)

// The names of the cookie that carries a token for browsers: over TLS, and
// without it. No other host can plant a cookie of the first name (RFC 6265bis,
// 4.1.3.2), so it counts before the second, which earlier versions used over TLS
// as well.
const (
	SecureCookieName = "__Host-cityconnect_session"
	CookieName       = "cityconnect_session"
)

// maxCookie is below the 4,096 bytes at which browsers drop a cookie without
// a word, attributes included.
const maxCookie = 3800

// A Session is what CreateSession and ReadSession answer: who the cookie
// speaks for.
type Session struct {
	Sub       string    `json:"sub"`
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	ExpiresAt time.Time `json:"expires_at"`
	Guest     bool      `json:"guest,omitempty"`     // has no account
	Adoptable bool      `json:"adoptable,omitempty"` // an account that may take over the reports of a guest, see Verifier.Guest
	// Departments are the codes in an official's token.
	Departments []string `json:"departments,omitempty"`
}

func sessionOf(p Principal) Session {
	return Session{Sub: p.ID, Name: p.Name, Role: p.Role, ExpiresAt: p.Expires, Guest: p.Guest, Departments: p.Departments}
}

// CreateSession serves POST /session behind Middleware: it puts the bearer
// token of the request into a cookie that scripts cannot read and other sites
// cannot make a browser send.
func (v *Verifier) CreateSession(w http.ResponseWriter, r *http.Request) error {
	p, ok := From(r.Context())
	token, fromCookie, err := credentials(r)
	if !ok || fromCookie || err != nil {
		w.Header().Set("WWW-Authenticate", challenge)
		return service.Unauthenticated.New("send the token as Authorization: Bearer <token>")
	}
	if len(token) > maxCookie {
		return service.InvalidInput.New("the token is too long for a cookie; ask the issuer for one with fewer claims",
			service.FieldError{Pointer: "Authorization", Detail: "too long"})
	}
	session := sessionOf(p)
	if v.guests != nil && mayAdopt(p) {
		session.Adoptable = v.keepGuest(w, r)
	}
	http.SetCookie(w, cookie(r, token, int(p.Expires.Sub(v.now()).Seconds())))
	return service.Encode(w, http.StatusOK, session)
}

// ReadSession serves GET /session behind Middleware: a page cannot read the
// cookie and asks here who is signed in. It is not an error if nobody is. It renews the
// cookie of a guest: only where a page begins, since an answer that is still on its way
// when the guest signs out must not bring the cookie back.
func (v *Verifier) ReadSession(w http.ResponseWriter, r *http.Request) error {
	p, ok := From(r.Context())
	if !ok {
		w.Header().Set("Cache-Control", "no-store")
		return service.NoContent(w)
	}
	session := sessionOf(p)
	_, fromCookie, err := credentials(r)
	if p.Guest && fromCookie && err == nil && p.Expires.Before(v.now().Add(GuestLife-renewGuestAfter)) {
		if session, err = v.setGuest(w, r, p.ID); err != nil {
			return err
		}
	}
	if v.guests != nil && mayAdopt(p) {
		_, session.Adoptable = v.Guest(r)
	}
	return service.Encode(w, http.StatusOK, session)
}

// DeleteSession serves DELETE /session: it removes the cookie and what the page
// has stored in the browser, such as a draft. The token itself stays valid until
// it expires: only its issuer could revoke it, and no service asks.
func (v *Verifier) DeleteSession(w http.ResponseWriter, r *http.Request) error {
	removeCookies(w, r)
	if v.guests != nil {
		v.ForgetGuest(w, r)
	}
	w.Header().Set("Clear-Site-Data", `"storage"`)
	return service.NoContent(w)
}

// removeCookies removes the cookie under either name.
func removeCookies(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "", -1))
	if overTLS(r) { // that of an earlier version
		old := cookie(r, "", -1)
		old.Name = CookieName
		http.SetCookie(w, old)
	}
}

// cookie returns the session cookie, or with a negative maxAge its removal.
func cookie(r *http.Request, token string, maxAge int) *http.Cookie {
	c := &http.Cookie{
		Name:     CookieName,
		Value:    token,
		Path:     "/",
		MaxAge:   maxAge,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}
	if overTLS(r) {
		c.Name, c.Secure = SecureCookieName, true
	}
	return c
}

// overTLS reports whether the browser speaks TLS, with us or with a gateway in
// front of us. A gateway ends TLS and says so in X-Forwarded-Proto, where the
// first value is the browser's; a browser reaches us through nothing else, and a
// lie in that header could only hide the liars' own cookies from themselves.
func overTLS(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https")
}
