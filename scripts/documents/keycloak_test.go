package documents

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
)

// A realm is what deploy/keycloak/realm.json says that matters here.
type realm struct {
	Realm                                                             string
	AccessTokenLifespan, SSOSessionIdleTimeout, SSOSessionMaxLifespan int
	DefaultRole                                                       struct{ Name string }
	Roles                                                             struct {
		Realm []struct {
			Name       string
			Composites struct{ Realm []string }
		}
	}
	ClientScopes []any
	Clients      []realmClient
}

type realmClient struct {
	ClientID                                       string
	PublicClient, StandardFlowEnabled              bool
	ImplicitFlowEnabled, DirectAccessGrantsEnabled bool
	RootURL                                        string
	RedirectURIs, WebOrigins                       []string
	Attributes                                     map[string]string
	ProtocolMappers                                []struct {
		ProtocolMapper string
		Config         map[string]string
	}
}

// settings are the variables that docs/keycloak.md says to set.
func keycloakSettings(t *testing.T) map[string]string {
	t.Helper()
	settings := make(map[string]string)
	for _, found := range regexp.MustCompile(`(?m)^((?:AUTH|PAGE)_[A-Z_]+)=(.+)$`).FindAllStringSubmatch(read(t, "docs/keycloak.md"), -1) {
		settings[found[1]] = found[2]
	}
	return settings
}

func readRealm(t *testing.T) realm {
	t.Helper()
	var r realm
	if err := json.Unmarshal([]byte(read(t, "deploy/keycloak/realm.json")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Clients) != 1 {
		t.Fatalf("the realm has %d clients, must have the page's", len(r.Clients))
	}
	return r
}

// token returns the claims of an access token that Keycloak makes by the mappers of the
// realm, for somebody with the given roles.
func (r realm) token(issuer string, roles ...string) jwt.MapClaims {
	claims := jwt.MapClaims{
		"iss": issuer, "sub": "f3a1c0de-0000-4000-8000-000000000001", "typ": "Bearer", "azp": r.Clients[0].ClientID,
		"exp": time.Now().Add(time.Duration(r.AccessTokenLifespan) * time.Second).Unix(),
	}
	for _, m := range r.Clients[0].ProtocolMappers {
		if m.Config["access.token.claim"] != "true" {
			continue
		}
		switch m.ProtocolMapper {
		case "oidc-audience-mapper":
			claims["aud"] = []string{m.Config["included.custom.audience"], "account"}
		case "oidc-usermodel-realm-role-mapper":
			claims[m.Config["claim.name"]] = append([]string{r.DefaultRole.Name}, roles...)
		case "oidc-full-name-mapper":
			claims["name"] = "Ada Lovelace"
		}
	}
	return claims
}

// defaultRoles are those of everybody who registers.
func (r realm) defaultRoles() []string {
	for _, role := range r.Roles.Realm {
		if role.Name == r.DefaultRole.Name {
			return role.Composites.Realm
		}
	}
	return nil
}

// Tokens of the realm are accepted by services with the settings of the manual: those
// of everybody as residents', with a name, and those of others with their roles.
func TestKeycloakTokensAreAccepted(t *testing.T) {
	t.Parallel()
	r, settings := readRealm(t), keycloakSettings(t)
	if want := "/realms/" + r.Realm; !strings.HasSuffix(settings["AUTH_ISSUER"], want) || settings["AUTH_JWKS_URL"] != "" {
		t.Errorf("AUTH_ISSUER is %s, must end with %s, and AUTH_JWKS_URL %s, must be left to it", settings["AUTH_ISSUER"], want, settings["AUTH_JWKS_URL"])
	}
	secret := strings.Repeat("s", 32)
	verifier, err := auth.New(t.Context(), auth.Config{
		Mode: auth.JWT, Issuer: settings["AUTH_ISSUER"], Audience: settings["AUTH_AUDIENCE"], RoleClaim: settings["AUTH_ROLE_CLAIM"], DepartmentsClaim: settings["AUTH_DEPARTMENTS_CLAIM"], Secret: secret,
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(r.Roles.Realm))
	for _, role := range r.Roles.Realm {
		names = append(names, role.Name)
	}
	for _, role := range auth.Roles() {
		if !slices.Contains(names, string(role)) {
			t.Errorf("the realm has no role %s", role)
		}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, r.token(settings["AUTH_ISSUER"], append(r.defaultRoles(), string(role))...)).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		p, err := verifier.Verify(t.Context(), token)
		if err != nil || p.Role != role || p.Name == "" || p.ID == "" {
			t.Errorf("%s: got %+v, error %v", role, p, err)
		}
	}
	if !slices.Equal(r.defaultRoles(), []string{string(auth.Resident)}) {
		t.Errorf("default roles are %q, must be resident", r.defaultRoles())
	}
	// Keycloak makes its own scopes, among them that of "sub", for a realm that has none.
	if r.ClientScopes != nil {
		t.Error("clientScopes must be left to Keycloak")
	}
}

// The page's client in the realm is what the page is: public, with PKCE, back at the two
// addresses that its sources name, and with a session that outlives its token.
func TestKeycloakClientIsThePage(t *testing.T) {
	t.Parallel()
	r := readRealm(t)
	c := r.Clients[0]
	if id := keycloakSettings(t)["PAGE_OIDC_CLIENT_ID"]; c.ClientID != id {
		t.Errorf("client is %s, the manual says %s", c.ClientID, id)
	}
	if !c.PublicClient || !c.StandardFlowEnabled || c.ImplicitFlowEnabled || c.DirectAccessGrantsEnabled ||
		c.Attributes["pkce.code.challenge.method"] != "S256" {
		t.Errorf("client must be public, with the authorization code flow and S256 alone: %+v", c)
	}
	var redirects []string
	for _, found := range regexp.MustCompile("`\\$\\{location\\.origin\\}(/[a-z.]*)`").FindAllStringSubmatch(read(t, "notification-service/internal/web/app/src/state/oidc.ts"), -1) {
		redirects = append(redirects, c.RootURL+found[1])
	}
	slices.Sort(redirects)
	if len(redirects) != 2 || !slices.Equal(slices.Sorted(slices.Values(c.RedirectURIs)), redirects) {
		t.Errorf("redirect URIs are %q, the page asks for %q", c.RedirectURIs, redirects)
	}
	if !slices.Equal(c.WebOrigins, []string{c.RootURL}) {
		t.Errorf("web origins are %q, must be %s", c.WebOrigins, c.RootURL)
	}
	if r.AccessTokenLifespan >= r.SSOSessionIdleTimeout || r.SSOSessionIdleTimeout > r.SSOSessionMaxLifespan {
		t.Errorf("a token lives %d s, an idle session %d s, a session %d s: must grow", r.AccessTokenLifespan, r.SSOSessionIdleTimeout, r.SSOSessionMaxLifespan)
	}
}
