// Package auth turns a bearer token into a Principal.
//
// A token is a JWT (RFC 7519) that is checked by algorithm, signature,
// issuer, audience and expiry. It arrives in the Authorization header or, from
// a browser's EventSource, in an HttpOnly cookie that carries the token
// itself, so that no service keeps sessions. The package promises that a
// token never reaches a log line, an error text or a URL.
package auth

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
)

// A Role says what a Principal may do.
type Role string

// The roles. A Resident files reports and votes, an Official moves their
// status, an Operator works with queues and dead letters. An Auditor reads all
// that operators read, and changes nothing but their own account. A Moderator is an
// Official of the whole city, see Principal.Official.
const (
	Resident  Role = "resident"
	Official  Role = "official"
	Moderator Role = "moderator"
	Operator  Role = "operator"
	Auditor   Role = "auditor"
)

// Connection is the role of a machine of a department, which has a key of the city. No token
// gives it, and it opens the operations alone whose documents name it.
const Connection Role = "connection"

// Firm is the role of a firm with the link to a report. It is given and opens as Connection is
// and does.
const Firm Role = "firm"

// roles lists the roles, the mightiest first: of several in one token, the
// first counts. A default role for everybody must not hide that of an auditor.
var roles = []Role{Operator, Moderator, Official, Auditor, Resident}

// Roles returns all roles, the mightiest first.
func Roles() []Role { return slices.Clone(roles) }

// A Principal is the user on whose behalf a request is made.
type Principal struct {
	ID      string // the token's subject
	Name    string // may be empty
	Role    Role
	Expires time.Time // when the token does
	Guest   bool      // has no account: the city itself has issued the token
	// Departments are the codes of those that an official works for, sorted.
	Departments []string
	// claim is the one that Departments come from, of an official who works for these alone.
	claim string
}

// Machine reports whether p has a key or a link of the city in the place of a token.
func (p Principal) Machine() bool { return p.Role == Connection || p.Role == Firm }

// Limited reports whether p is an official who works for Departments alone.
func (p Principal) Limited() bool { return p.claim != "" }

// Official reports whether p may use the operations of officials. One who works for
// departments alone, and whose token names none, may not.
func (p Principal) Official() bool {
	return p.Role == Moderator || p.Role == Official && (!p.Limited() || len(p.Departments) > 0)
}

type principalKey struct{}

// From returns the principal of a request's context; ok is false for an
// anonymous request.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// Must returns the principal of a request whose operation is for those who signed in,
// as its document says. It panics if there is none.
func Must(r *http.Request) Principal {
	p, ok := From(r.Context())
	if !ok {
		panic("auth: " + r.Pattern + " reached its handler without a principal")
	}
	return p
}

// With returns a context that carries p, for tests and for what Middleware
// does.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Require lets a principal with one of roles pass, or any principal if
// there are none; where officials may pass, so may moderators. It answers 401 to an
// anonymous request and 403 to others.
func Require(roles ...Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, ok := From(r.Context())
			switch {
			case !ok:
				w.Header().Set("WWW-Authenticate", challenge)
				service.WriteProblem(w, r, service.Unauthenticated.New("send a bearer token, or sign in"))
			case refusesConnection(p, roles):
				service.WriteProblem(w, r, errConnection)
			case len(roles) > 0 && !slices.Contains(roles, p.Role) && !(p.Official() && slices.Contains(roles, Official)):
				service.WriteProblem(w, r, service.Forbidden.New("this needs another role than "+string(p.Role)))
			case p.Role == Official && !p.Official() && slices.Contains(roles, Official) && !slices.Contains(roles, Resident):
				service.WriteProblem(w, r, service.Forbidden.New("the token names no department: here an official's has codes of departments in the claim "+p.claim))
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

var errConnection = service.Forbidden.New("neither the key of a connection nor the link of a firm opens this")

func refusesConnection(p Principal, roles []Role) bool {
	return p.Machine() && !slices.Contains(roles, p.Role)
}

// Open lets everybody pass, signed in or not; connections and firms only if roles name them.
func Open(roles ...Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, _ := From(r.Context()); refusesConnection(p, roles) {
				service.WriteProblem(w, r, errConnection)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
