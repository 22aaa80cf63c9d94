package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/config"
)

const (
	// leeway forgives clocks that differ a little.
	leeway = 30 * time.Second
	// jwksRefresh is how often the published keys are read again.
	jwksRefresh = 10 * time.Minute
	// jwksUnknown is how often a token with an unknown key id may make us look
	// before that, so that strangers cannot make us hammer the issuer.
	jwksUnknown = 10 * time.Second
	// jwksWait bounds what such a token may wait for.
	jwksWait = 3 * time.Second
	// maxID and maxName keep what a token brings along within what columns,
	// message headers and pages expect.
	maxID, maxName = 255, 200
)

// ErrToken says that a token is not accepted. Its text tells why and never
// shows the token; it may be told to whoever sent it.
var ErrToken = errors.New("token not accepted")

// A Verifier checks tokens.
type Verifier struct {
	cfg    Config
	parser *jwt.Parser
	key    func(context.Context) jwt.Keyfunc
	now    func() time.Time
}

// New returns the Verifier that cfg describes. With a JWKS URL it keeps the
// keys fresh until ctx ends; an issuer that is not there yet is no error,
// because it may come up after us.
func New(ctx context.Context, cfg Config, log zerolog.Logger) (*Verifier, error) {
	if err := config.NewError(cfg.Validate()); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg, now: time.Now}
	methods := []string{"HS256"}
	if cfg.JWKSURL != "" {
		methods = []string{"RS256", "ES256", "EdDSA"}
		keys, err := jwks(ctx, cfg.JWKSURL, log)
		if err != nil {
			return nil, fmt.Errorf("AUTH_JWKS_URL: %w", err)
		}
		v.key = keys.KeyfuncCtx
	} else {
		secret := []byte(cfg.Secret)
		v.key = func(context.Context) jwt.Keyfunc {
			return func(*jwt.Token) (any, error) { return secret, nil }
		}
	}
	v.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithIssuer(cfg.Issuer),
		jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway))
	if cfg.Mode == Dev {
		log.Warn().Msg("AUTH_MODE=dev: whoever reaches this service can sign in as anyone")
	}
	return v, nil
}

func jwks(ctx context.Context, url string, log zerolog.Logger) (keyfunc.Keyfunc, error) {
	return keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		HTTPTimeout:       jwksWait,
		RateLimitWaitMax:  jwksWait,
		RefreshInterval:   jwksRefresh,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(jwksUnknown), 1),
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(_ context.Context, err error) {
				log.Error().Err(err).Msg("the issuer's keys could not be read")
			}
		},
	})
}

// Verify returns the principal that token speaks for, or an error that wraps
// ErrToken.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, error) {
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.key(ctx)); err != nil {
		return Principal{}, fmt.Errorf("%w: %s", ErrToken, reason(err))
	}
	p := Principal{Role: v.role(claims)}
	if p.Role == "" {
		return Principal{}, fmt.Errorf("%w: it grants no role of this service", ErrToken)
	}
	p.ID, _ = claims["sub"].(string)
	if !printable(p.ID, maxID) || p.ID == "" {
		return Principal{}, fmt.Errorf("%w: its subject is missing or not a short text", ErrToken)
	}
	p.Name, _ = claims["name"].(string)
	if !printable(p.Name, maxName) {
		return Principal{}, fmt.Errorf("%w: its name is not a short text", ErrToken)
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return Principal{}, fmt.Errorf("%w: it does not expire", ErrToken)
	}
	p.Expires = exp.Time
	return p, nil
}

// reason words a failure of the parser without what the token contains.
func reason(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "it is not a JWT"
	case errors.Is(err, jwt.ErrTokenExpired):
		return "it has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return "it is not valid yet"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return "it is for another audience"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return "it is from another issuer"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return "it lacks a claim"
	}
	return "its signature does not fit"
}

// role returns the mightiest role that the role claim grants: a string or a
// list of strings, at its plain name or, as in realm_access.roles, at a path.
func (v *Verifier) role(claims jwt.MapClaims) Role {
	value, ok := claims[v.cfg.RoleClaim]
	if !ok {
		value = map[string]any(claims)
		for step := range strings.SplitSeq(v.cfg.RoleClaim, ".") {
			inner, _ := value.(map[string]any)
			value = inner[step]
		}
	}
	granted, ok := value.([]any)
	if !ok {
		granted = []any{value}
	}
	for _, role := range roles {
		for _, g := range granted {
			if g == string(role) {
				return role
			}
		}
	}
	return ""
}

func printable(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}
