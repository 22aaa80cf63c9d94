package auth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
)

// challenge is the WWW-Authenticate of every 401.
const challenge = "Bearer"

// crossOrigin detects requests that another site made a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// Middleware puts the principal into the request's context. The Authorization
// header counts before the cookie; with neither, the request goes on as an
// anonymous one. A token that is not accepted is answered with 401, and a
// cookie that holds one is removed, so that it does not lock the browser out. A token that
// cannot be judged now is answered with 503, and the cookie stays.
//
// Requests authorised by a cookie are guarded against cross-site requests. A
// bearer token needs no guard: no browser adds it by itself.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, fromCookie, err := credentials(r)
		if err == nil && token == "" {
			next.ServeHTTP(w, r)
			return
		}
		if fromCookie && crossOrigin.Check(r) != nil {
			service.WriteProblem(w, r, service.CrossSite.New("sign-in by cookie works from this site only"))
			return
		}
		var p Principal
		if err == nil {
			p, err = v.Verify(r.Context(), token)
		}
		adopted := false
		if err == nil && p.Guest && v.adopted != nil {
			if adopted, err = v.adopted(r.Context(), p.ID); err != nil {
				err = &fault.Error{Kind: fault.Unavailable, Msg: "your session cannot be checked at the moment; it is kept", Err: err}
			}
		}
		if fault.KindOf(err) == fault.Unavailable {
			retry := service.Unavailable
			retry.RetryAfter = unknownEvery
			unjudged, _ := errors.AsType[*fault.Error](err)
			service.WriteProblem(w, r, retry.New(unjudged.Msg))
			return
		}
		if err != nil || adopted {
			problem := GuestAdopted.New("sign in with the account that has taken over the reports")
			if !adopted {
				problem = service.InvalidToken.New(err.Error())
			}
			// An EventSource cannot read why it is refused: the page asks GET /session then.
			if fromCookie && (!adopted || r.Header.Get("Accept") != "text/event-stream") {
				removeCookies(w, r)
			}
			w.Header().Set("WWW-Authenticate", challenge+` error="invalid_token"`)
			service.WriteProblem(w, r, problem)
			return
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), p)))
	})
}

var errScheme = errors.New("the Authorization header is not of the form Bearer <token>")

// credentials returns the request's token, or "" if it has none.
func credentials(r *http.Request) (token string, fromCookie bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		token, err := bearer(header)
		return token, false, err
	}
	token = cookieToken(r)
	return token, token != "", nil
}

// cookieToken returns the token in the session cookie, or "" if there is none. Over TLS that
// is the one that no other host can set.
func cookieToken(r *http.Request) string {
	c, err := r.Cookie(cookie(r, "", 0).Name)
	if err != nil {
		return ""
	}
	return c.Value
}

func bearer(header string) (string, error) {
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", errScheme
	}
	return token, nil
}
