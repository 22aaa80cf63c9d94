package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jellydator/ttlcache/v3"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
)

const (
	// leeway forgives clocks that differ a little.
	leeway = 30 * time.Second
	// maxID is in bytes and maxName in characters. They keep what a token brings
	// along within what columns, message headers and pages expect.
	maxID, maxName = 255, 200
	// maxAccepted bounds how many accepted tokens are remembered, to some megabytes.
	maxAccepted = 10_000
	// defaultTokenLife is what identity providers give access tokens at most.
	defaultTokenLife = 24 * time.Hour
	// maxDepartments bounds what a token brings along: nobody works for more.
	maxDepartments = 50
)

// ErrToken says that a token is not accepted. Its text says why and never
// shows the token; it may be shown to the client.
var ErrToken = errors.New("token not accepted")

// A Verifier checks tokens.
type Verifier struct {
	cfg     Config
	parser  *jwt.Parser
	methods []string // the algorithms that tokens may be signed with
	secret  []byte
	issuer  *issuer // nil with a secret
	now     func() time.Time
	erased  func(userID string) bool                                // nil if nobody ever is
	guests  *jwt.Parser                                             // nil where nobody reports without an account
	adopted func(ctx context.Context, guestID string) (bool, error) // nil if no guest ever is
	// accepted are the tokens that were seen lately, by their SHA-256: a client
	// sends the same one with each request.
	accepted *ttlcache.Cache[[sha256.Size]byte, acceptedToken]
}

// An acceptedToken is what a token says, as long as the issuer's keys are those
// by which it was checked.
type acceptedToken struct {
	Principal
	keysRead time.Time
}

// New returns the Verifier that cfg describes. Without a secret it keeps the issuer's
// keys fresh until ctx ends. An issuer that cannot be reached yet is not an error,
// because it may come up after us. See Checks.
func New(ctx context.Context, cfg Config, log zerolog.Logger, options ...Option) (*Verifier, error) {
	if err := config.NewError(cfg.Validate()); err != nil {
		return nil, err
	}
	cfg.MaxTokenLife = cmp.Or(cfg.MaxTokenLife, defaultTokenLife)
	v := &Verifier{
		cfg: cfg, secret: []byte(cfg.Secret), now: time.Now,
		accepted: ttlcache.New(ttlcache.WithCapacity[[sha256.Size]byte, acceptedToken](maxAccepted)),
	}
	for _, option := range options {
		option(v)
	}
	v.methods = []string{"HS256"}
	if cfg.Secret == "" {
		v.methods = publicKeyMethods
		v.issuer = newIssuer(cfg.Issuer, cfg.JWKSURL, log)
		go v.issuer.run(ctx)
	}
	v.parser = jwt.NewParser(jwt.WithValidMethods(v.methods), jwt.WithIssuer(cfg.Issuer),
		jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway))
	if cfg.Guests {
		v.guests = jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer(GuestIssuer),
			jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway))
	}
	if cfg.Mode == Dev {
		log.Warn().Msg("AUTH_MODE=dev: any client of this service can sign in as anyone")
	}
	return v, nil
}

// An Option is a reason to refuse valid tokens.
type Option func(*Verifier)

// RefuseErased refuses the tokens of users who were erased.
func RefuseErased(erased func(userID string) bool) Option {
	return func(v *Verifier) { v.erased = erased }
}

// Endpoints returns the addresses at which the issuer signs people in, where the
// issuer was asked for its addresses and has answered.
func (v *Verifier) Endpoints() []string {
	if v.issuer == nil {
		return nil
	}
	return v.issuer.endpoints()
}

// Checks returns what readiness depends on: without a secret, that the issuer's
// keys have been read once. A replica that has never reached the issuer can
// serve no signed-in user, while another one may.
func (v *Verifier) Checks() []service.Check {
	if v.issuer == nil {
		return nil
	}
	return []service.Check{{Name: "issuer", Probe: v.issuer.probe}}
}

// Verify returns the principal that token speaks for. Its error wraps ErrToken,
// or is of kind fault.Unavailable if the token cannot be judged now.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, error) {
	digest := sha256.Sum256([]byte(token))
	keysRead := v.issuer.keysRead() // before the check, during which they may be read again
	var known acceptedToken
	if item := v.accepted.Get(digest); item != nil {
		known = item.Value()
	}
	if !known.keysRead.Equal(keysRead) || !v.now().Before(known.Expires.Add(leeway)) {
		p, err := v.check(ctx, token)
		if err != nil {
			return Principal{}, err
		}
		known = acceptedToken{p, keysRead}
		v.accepted.Set(digest, known, ttlcache.NoTTL)
	}
	if v.erased != nil && v.erased(known.ID) {
		return Principal{}, fmt.Errorf("%w: its account was erased", ErrToken)
	}
	return known.Principal, nil
}

// check is Verify for a token that was not seen before, except that it does not
// check for erased users.
func (v *Verifier) check(ctx context.Context, token string) (Principal, error) {
	if v.guests != nil && ofGuest(token) {
		return v.checkGuest(token)
	}
	claims := jwt.MapClaims{}
	parsed, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if err := checkHeader(t.Header); err != nil {
			return nil, err
		}
		if v.issuer == nil {
			return v.secret, nil
		}
		return v.issuer.keyOf(ctx, t)
	})
	if err != nil {
		if unknown, ok := errors.AsType[*fault.Error](err); ok {
			return Principal{}, unknown
		}
		return Principal{}, fmt.Errorf("%w: %s", ErrToken, reason(err, parsed, claims, v.methods))
	}
	if sign := otherToken(parsed.Header, claims); sign != "" {
		return Principal{}, fmt.Errorf("%w: it is not an access token: it has %s", ErrToken, sign)
	}
	p := Principal{Role: v.role(claims)}
	if p.Official() {
		p.Departments = departments(v.claim(claims, v.cfg.DepartmentsClaim))
	}
	if p.Role == Official && v.cfg.DeskScope == DepartmentDesk {
		p.claim = v.cfg.DepartmentsClaim
	}
	if p.Role == "" {
		return Principal{}, fmt.Errorf("%w: it grants no role of this service", ErrToken)
	}
	p.ID, _ = claims["sub"].(string)
	if p.ID == "" || len(p.ID) > maxID || text.CheckID(p.ID) != nil {
		return Principal{}, fmt.Errorf("%w: its subject is missing or not a short text", ErrToken)
	}
	name, _ := claims["name"].(string)
	p.Name = displayName(name)
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return Principal{}, fmt.Errorf("%w: it does not expire", ErrToken)
	}
	if exp.After(v.now().Add(v.cfg.MaxTokenLife + leeway)) {
		return Principal{}, fmt.Errorf("%w: it is valid for longer than %s", ErrToken, v.cfg.MaxTokenLife)
	}
	p.Expires = exp.Time
	return p, nil
}

// displayName returns the name of a token as it is shown. Nothing depends on it, so
// that it locks nobody out: it is cleaned and shortened.
func displayName(name string) string {
	name = strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "")
	return text.Shorten(strings.TrimSpace(text.CleanLine(name)), maxName)
}

var (
	errCritical = errors.New("it depends on an extension that is not supported")
	errType     = errors.New("it is of another type")
)

// tokenTypes are the types of tokens that are accepted: none, that of any JWT,
// and that of access tokens (RFC 9068).
var tokenTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// checkHeader refuses values that the parser does not check.
func checkHeader(header map[string]any) error {
	if _, ok := header["crit"]; ok { // RFC 7515, 4.1.11: we understand none
		return errCritical
	}
	typ, isText := header["typ"].(string)
	if !isText && header["typ"] != nil || !slices.Contains(tokenTypes, strings.ToLower(typ)) {
		return errType
	}
	return nil
}

// otherToken returns what shows that a token is for signing in at a client and not
// for an API, or is a refresh token; "" if nothing does. Nothing tells them apart for
// sure unless the issuer sets the type at+jwt, and many common ones do not. These are
// the signs that no access token has: two hashes of OpenID Connect, and the claims in
// which Keycloak and Cognito say it. The third hash, at_hash, does not identify one: Dex writes
// it into access tokens as well.
func otherToken(header map[string]any, claims jwt.MapClaims) string {
	if typ, _ := header["typ"].(string); strings.HasSuffix(strings.ToLower(typ), "at+jwt") {
		return ""
	}
	for _, hash := range []string{"c_hash", "s_hash"} {
		if _, ok := claims[hash]; ok {
			return hash + ", as ID tokens do"
		}
	}
	if typ, _ := claims["typ"].(string); slices.Contains([]string{"ID", "Refresh", "Offline", "Logout"}, typ) {
		return "the typ " + typ
	}
	if claims["token_use"] == "id" {
		return "the token_use id"
	}
	return ""
}

// reason words a failure of the parser without what the token contains, except for
// the names of claims. token and claims are what was read of it so far, and methods the
// algorithms that it may have.
func reason(err error, token *jwt.Token, claims jwt.MapClaims, methods []string) string {
	switch {
	case errors.Is(err, errCritical):
		return errCritical.Error()
	case errors.Is(err, errType):
		return errType.Error()
	case errors.Is(err, errUnknownKey):
		return "its key is not one of the issuer's"
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "it is not a JWT"
	case !slices.Contains(methods, fmt.Sprint(token.Header["alg"])):
		return "its algorithm must be one of " + strings.Join(methods, ", ")
	case errors.Is(err, jwt.ErrTokenInvalidClaims) && wrongTypes(claims) != "":
		return wrongTypes(claims)
	case errors.Is(err, jwt.ErrTokenExpired):
		return "it has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return "it is not valid yet"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return "it is for another audience"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return "it is from another issuer"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return "a claim is missing"
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "its signature does not fit"
	}
	return "it cannot be checked"
}

// wrongTypes names the claims that have another type than RFC 7519 (4.1) says, which
// must be numbers or texts; "" if there are none.
func wrongTypes(claims jwt.MapClaims) string {
	var wrong []string
	for _, name := range []string{"exp", "iat", "nbf"} {
		if _, ok := claims[name].(float64); !ok && claims[name] != nil {
			wrong = append(wrong, name+" must be a number")
		}
	}
	if _, ok := claims["iss"].(string); !ok && claims["iss"] != nil {
		wrong = append(wrong, "iss must be a text")
	}
	switch audience := claims["aud"].(type) {
	case nil, string:
	case []any:
		if slices.ContainsFunc(audience, func(a any) bool { _, ok := a.(string); return !ok }) {
			wrong = append(wrong, "aud must be a list of texts")
		}
	default:
		wrong = append(wrong, "aud must be a text or a list of texts")
	}
	return strings.Join(wrong, ", ")
}

// claim returns the values of a claim: one or a list, at its plain name or, as in
// realm_access.roles, at a path.
func (*Verifier) claim(claims jwt.MapClaims, name string) []any {
	value, ok := claims[name]
	if !ok {
		value = map[string]any(claims)
		for step := range strings.SplitSeq(name, ".") {
			inner, _ := value.(map[string]any)
			value = inner[step]
		}
	}
	if values, ok := value.([]any); ok && len(values) > 0 {
		return values
	}
	return []any{value}
}

// departments returns the codes in the values of a claim. A text that is the only one may
// have several, between commas or spaces. Keycloak writes a slash before the name of a group.
// Others are left out, such as a group within another.
func departments(values []any) (codes []string) {
	if text, ok := values[0].(string); ok && len(values) == 1 {
		values = nil
		for _, code := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			values = append(values, code)
		}
	}
	for _, value := range values {
		code, _ := value.(string)
		codes = append(codes, strings.ToLower(strings.TrimPrefix(code, "/")))
	}
	codes = slices.DeleteFunc(codes, func(code string) bool { return !IsCode(code) })
	slices.Sort(codes)
	codes = slices.Compact(codes)
	return codes[:min(len(codes), maxDepartments)]
}

var codeForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// IsCode reports whether a text can be the code of a department.
func IsCode(code string) bool { return codeForm.MatchString(code) }

// role returns the mightiest role that the role claim grants.
func (v *Verifier) role(claims jwt.MapClaims) Role {
	granted := v.claim(claims, v.cfg.RoleClaim)
	for _, role := range roles {
		for _, g := range granted {
			if g == string(role) {
				return role
			}
		}
	}
	return ""
}
