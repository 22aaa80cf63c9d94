package auth

import (
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
)

// CookieName is the cookie that carries a token for browsers.
const CookieName = "cityconnect_session"

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
	http.SetCookie(w, v.cookie(r, token, int(p.Expires.Sub(v.now()).Seconds())))
	return service.Encode(w, http.StatusOK, Session{p.ID, p.Name, p.Role, p.Expires})
}

// ReadSession serves GET /session behind Middleware: a page cannot read the
// cookie and asks here who is signed in. Nobody is no error.
func (v *Verifier) ReadSession(w http.ResponseWriter, r *http.Request) error {
	p, ok := From(r.Context())
	if !ok {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return service.Encode(w, http.StatusOK, Session{p.ID, p.Name, p.Role, p.Expires})
}

// DeleteSession serves DELETE /session: it removes the cookie.
func (v *Verifier) DeleteSession(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, v.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// cookie returns the session cookie, or with a negative maxAge its removal.
// The gateway ends TLS and says so, and a browser reaches us through nothing
// else; a lie in that header could only hide the liar's own cookie from him.
func (v *Verifier) cookie(r *http.Request, token string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name:     CookieName,
		Value:    token,
		Path:     "/",
		MaxAge:   maxAge,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}
