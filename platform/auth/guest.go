package auth

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
)

// GuestIssuer is the iss of the tokens of guests, which the city issues itself.
const GuestIssuer = "cityconnect-guests"

const (
	// GuestLife is how long a guest's token is valid. A browser that comes back within it
	// gets a new one, see ReadSession.
	GuestLife = 30 * 24 * time.Hour
	// renewGuestAfter is how old a guest's token is when it is renewed: a page that is open all
	// day does not need a new one each time.
	renewGuestAfter = 24 * time.Hour
)

// The names of the cookie with a guest's token while an account is signed in, which may
// take over the guest's reports: over TLS, and without it.
const (
	secureGuestCookieName = "__Host-cityconnect_guest"
	guestCookieName       = "cityconnect_guest"
)

// GuestAdopted is the problem of a guest whose reports are in an account by now.
var GuestAdopted = service.ProblemType{Status: http.StatusUnauthorized, Name: "guest-adopted", Title: "An account has taken over the reports of this guest"}

// RefuseAdopted refuses the tokens of guests whom an account has taken over.
func RefuseAdopted(adopted func(ctx context.Context, guestID string) (bool, error)) Option {
	return func(v *Verifier) { v.adopted = adopted }
}

// ofGuest reports whether a token says that the city has issued it. Its signature is not
// checked.
func ofGuest(token string) bool {
	var claims jwt.RegisteredClaims
	_, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	return err == nil && claims.Issuer == GuestIssuer
}

// checkGuest is check for the token of a guest, who is a resident without a name,
// whatever else the token says.
func (v *Verifier) checkGuest(token string) (Principal, error) {
	claims := jwt.MapClaims{}
	parsed, err := v.guests.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if err := checkHeader(t.Header); err != nil {
			return nil, err
		}
		var keys jwt.VerificationKeySet
		for _, key := range v.cfg.guestKeys() {
			keys.Keys = append(keys.Keys, []byte(key))
		}
		return keys, nil
	})
	if err != nil {
		return Principal{}, fmt.Errorf("%w: %s", ErrToken, reason(err, parsed, claims, []string{"HS256"}))
	}
	id, _ := claims["sub"].(string)
	exp, err := claims.GetExpirationTime()
	if _, invalid := uuid.Parse(id); invalid != nil || err != nil || exp == nil || exp.After(v.now().Add(GuestLife+leeway)) {
		return Principal{}, fmt.Errorf("%w: it is not one of the city's guests", ErrToken)
	}
	return Principal{ID: id, Role: Resident, Guest: true, Expires: exp.Time}, nil
}

// NewGuest returns the id of a new guest: random, so that nothing leads from one to
// another.
func NewGuest() string { return uuid.NewString() }

// CheckOrigin refuses a request that another site made a browser send: its user would go on
// as somebody else's guest.
func CheckOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil {
		return service.CrossSite.New("sessions are opened from this site only")
	}
	return nil
}

// OpenGuest answers with the session of the guest with id, behind Middleware, and puts its
// token into the session cookie. The caller has asked CheckOrigin.
func (v *Verifier) OpenGuest(w http.ResponseWriter, r *http.Request, id string) error {
	session, err := v.setGuest(w, r, id)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, session)
}

// setGuest puts a new token of the guest with id into the session cookie.
func (v *Verifier) setGuest(w http.ResponseWriter, r *http.Request, id string) (Session, error) {
	expires := v.now().Add(GuestLife).Truncate(time.Second)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": GuestIssuer, "aud": v.cfg.Audience, "sub": id, "iat": v.now().Unix(), "exp": expires.Unix(),
	}).SignedString([]byte(v.cfg.guestKeys()[0]))
	if err != nil {
		return Session{}, fmt.Errorf("sign guest's token: %w", err)
	}
	http.SetCookie(w, cookie(r, token, int(GuestLife.Seconds())))
	return Session{Sub: id, Role: Resident, Guest: true, ExpiresAt: expires}, nil
}

// Guest returns the guest who used the browser of r before the account of r signed in, and
// whose reports the account may take over; ok is false if there is none.
func (v *Verifier) Guest(r *http.Request) (guest Principal, ok bool) {
	c, err := r.Cookie(guestCookie(r, "", 0).Name)
	if err != nil {
		return Principal{}, false
	}
	guest, err = v.Verify(r.Context(), c.Value)
	return guest, err == nil && guest.Guest
}

// ForgetGuest removes the cookie that Guest reads.
func (v *Verifier) ForgetGuest(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, guestCookie(r, "", -1))
}

// keepGuest moves the token of a guest, as whom a browser comes that signs in now, to the
// cookie that Guest reads. It reports whether there is a guest then.
func (v *Verifier) keepGuest(w http.ResponseWriter, r *http.Request) bool {
	if token := cookieToken(r); token != "" {
		if guest, err := v.Verify(r.Context(), token); err == nil && guest.Guest {
			http.SetCookie(w, guestCookie(r, token, int(guest.Expires.Sub(v.now()).Seconds())))
			return true
		}
	}
	_, ok := v.Guest(r)
	return ok
}

// mayAdopt reports whether p is an account that takes over a guest's reports: of a role
// that files reports.
func mayAdopt(p Principal) bool { return !p.Guest && (p.Role == Resident || p.Official()) }

func guestCookie(r *http.Request, token string, maxAge int) *http.Cookie {
	c := cookie(r, token, maxAge)
	c.Name = guestCookieName
	if c.Secure {
		c.Name = secureGuestCookieName
	}
	return c
}
