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
	"sync"
	"testing"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A provider is an identity provider that says where its keys are. Its answers can be
// changed while it runs.
type provider struct {
	url string
	key *ecdsa.PrivateKey

	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	asked   []string
}

// newProvider returns a provider whose name has a path.
func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), answers: make(map[string]http.HandlerFunc)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.Path)
		answer := p.answers[r.URL.Path]
		p.mu.Unlock()
		if answer == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	p.url = srv.URL + "/realms/city"
	p.publish(t, "/keys", "k1", p.key)
	p.describe("/realms/city/.well-known/openid-configuration", p.document())
	return p
}

// document is what the provider says of itself.
func (p *provider) document() map[string]string {
	origin := strings.TrimSuffix(p.url, "/realms/city")
	return map[string]string{
		"issuer": p.url, "jwks_uri": origin + "/keys",
		"authorization_endpoint": "https://sign-in.city.test/authorize", "token_endpoint": origin + "/token",
	}
}

// describe answers with document at path.
func (p *provider) describe(path string, document map[string]string) {
	p.answer(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) })
}

func (p *provider) answer(path string, answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[path] = answer
}

// publish answers with a key alone at path.
func (p *provider) publish(t *testing.T, path, kid string, key *ecdsa.PrivateKey) {
	t.Helper()
	store := jwkset.NewMemoryStorage()
	jwk := must(jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid, ALG: jwkset.AlgES256}}))
	if err := store.KeyWrite(t.Context(), jwk); err != nil {
		t.Fatal(err)
	}
	body := must(store.JSONPublic(t.Context()))
	p.answer(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
}

// config is that of a service with AUTH_ISSUER alone.
func (p *provider) config() auth.Config {
	cfg := config()
	cfg.Secret, cfg.Issuer = "", p.url
	return cfg
}

func (p *provider) token(t *testing.T, kid string, key *ecdsa.PrivateKey) string {
	t.Helper()
	return sign(t, jwt.SigningMethodES256, kid, key, claims(jwt.MapClaims{"iss": p.url}))
}

// With AUTH_ISSUER alone the issuer is asked where its keys are, and where people
// sign in.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	const below, before = "/realms/city/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/realms/city"
	for name, change := range map[string]func(*provider){
		"OpenID Connect":     func(*provider) {},
		"RFC 8414":           func(p *provider) { p.answer(below, nil); p.describe(before, p.document()) },
		"a slash at the end": func(p *provider) { p.url += "/"; p.describe(below, withIssuer(p.document(), p.url)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			origin := strings.TrimSuffix(p.url, "/realms/city")
			change(p)
			v := newVerifier(t, p.config())
			token := p.token(t, "k1", p.key)
			got, err := v.Verify(t.Context(), token)
			checkVerified(t, got, err, token, "")
			if err := v.Checks()[0].Probe(t.Context()); err != nil {
				t.Errorf("readiness: %v", err)
			}
			want := []string{"https://sign-in.city.test/authorize", origin + "/token"}
			if name != "a slash at the end" && !slices.Equal(v.Endpoints(), want) {
				t.Errorf("endpoints %q, want %q", v.Endpoints(), want)
			}
		})
	}
}

func withIssuer(document map[string]string, issuer string) map[string]string {
	origin, _, _ := strings.Cut(issuer, "/realms/")
	document["issuer"], document["jwks_uri"] = issuer, origin+"/keys"
	return document
}

// An issuer that describes itself in a way that cannot be believed or read stops no
// start, is asked again, and the error of the readiness says why.
func TestDiscoveryOfWhatCannotBeBelieved(t *testing.T) {
	t.Parallel()
	const document = "/realms/city/.well-known/openid-configuration"
	with := func(name, value string) func(*provider) {
		return func(p *provider) {
			changed := p.document()
			changed[name] = value
			p.describe(document, changed)
		}
	}
	large := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`))
	}
	for _, tt := range []struct {
		name   string
		change func(*provider)
		want   string
	}{
		{"another issuer", with("issuer", "https://evil.test"), `is about the issuer "https://evil.test"; AUTH_ISSUER must be the same, letter by letter`},
		{"one that differs by a slash", func(p *provider) { with("issuer", p.url+"/")(p) }, "AUTH_ISSUER must be the same"},
		{"no issuer", with("issuer", ""), "AUTH_ISSUER must be the same"},
		{"no keys", with("jwks_uri", ""), "has no jwks_uri that begins with https://"},
		{"keys without TLS", with("jwks_uri", "http://id.test/keys"), "has no jwks_uri that begins with https://"},
		{"keys in a file", with("jwks_uri", "file:///etc/passwd"), "has no jwks_uri that begins with https://"},
		{"nothing", func(p *provider) { p.answer(document, nil) }, "oauth-authorization-server/realms/city: the issuer answered 404"},
		{"a redirect", func(p *provider) {
			p.answer(document, http.RedirectHandler("https://evil.test", http.StatusFound).ServeHTTP)
		}, "the issuer answered 302"},
		{"an error", func(p *provider) {
			p.answer(document, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		}, "the issuer answered 502"},
		{"a page", func(p *provider) {
			p.answer(document, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
		}, "invalid character"},
		{"too much", func(p *provider) { p.answer(document, large) }, "has more than 1048576 bytes"},
		{"too many keys", func(p *provider) { p.answer("/keys", large) }, "/keys: the answer has more than 1048576 bytes"},
		{"silence", func(p *provider) {
			p.answer(document, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, "Client.Timeout exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			tt.change(p)
			v := newVerifier(t, p.config())
			if _, err := v.Verify(t.Context(), p.token(t, "k1", p.key)); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("Verify: %v, want an error of kind unavailable", err)
			}
			probe := v.Checks()[0].Probe
			if err := probe(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("readiness: %v, want %q", err, tt.want)
			}
			if strings.HasPrefix(tt.name, "keys") && len(v.Endpoints()) > 0 {
				t.Errorf("endpoints %q of a description that is not believed", v.Endpoints())
			}
			p.publish(t, "/keys", "k1", p.key)
			p.describe(document, p.document())
			eventually.True(t, "the issuer is asked again", func() bool { return probe(t.Context()) == nil })
		})
	}
}

// Endpoints at which no browser should be are not named.
func TestDiscoveredEndpointsAreSafe(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	document := p.document()
	document["authorization_endpoint"], document["token_endpoint"] = "http://id.test/authorize", "https://id.test;script-src/token"
	p.describe("/realms/city/.well-known/openid-configuration", document)
	v := newVerifier(t, p.config())
	if _, err := v.Verify(t.Context(), p.token(t, "k1", p.key)); err != nil {
		t.Fatal(err)
	}
	if got := v.Endpoints(); len(got) > 0 {
		t.Errorf("endpoints %q, want none", got)
	}
}

// Keys that change, and keys that move, are found by the first token that needs them.
func TestDiscoveredKeysRotate(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]string{"in place": "/keys", "to another address": "/keys/2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			v := newVerifier(t, p.config())
			before := p.token(t, "k1", p.key)
			got, err := v.Verify(t.Context(), before)
			checkVerified(t, got, err, before, "")

			fresh := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
			document := p.document()
			document["jwks_uri"] = strings.TrimSuffix(document["jwks_uri"], "/keys") + moved
			p.answer("/keys", nil)
			p.publish(t, moved, "k2", fresh)
			p.describe("/realms/city/.well-known/openid-configuration", document)
			after := p.token(t, "k2", fresh)
			got, err = v.Verify(t.Context(), after)
			checkVerified(t, got, err, after, "")
			if got, err := v.Verify(t.Context(), before); err == nil {
				t.Errorf("the withdrawn key is still accepted: %+v", got)
			}
		})
	}
}

// The description is read once for many tokens, and not at all with AUTH_JWKS_URL.
func TestDiscoveryAsksOnce(t *testing.T) {
	t.Parallel()
	for _, explicit := range []bool{false, true} {
		p := newProvider(t)
		cfg := p.config()
		if explicit {
			cfg.JWKSURL = p.document()["jwks_uri"]
		}
		v := newVerifier(t, cfg)
		for range 20 {
			token := p.token(t, "k1", p.key)
			got, err := v.Verify(t.Context(), token)
			checkVerified(t, got, err, token, "")
		}
		if _, err := v.Verify(t.Context(), p.token(t, "strange", p.key)); err == nil {
			t.Error("an unknown key is accepted")
		}
		p.mu.Lock()
		asked := slices.DeleteFunc(slices.Clone(p.asked), func(path string) bool { return path == "/keys" })
		p.mu.Unlock()
		if want := map[bool]int{false: 1, true: 0}[explicit]; len(asked) != want {
			t.Errorf("with AUTH_JWKS_URL: %t: asked for %q, want %d", explicit, asked, want)
		}
		if explicit && v.Endpoints() != nil {
			t.Errorf("endpoints %q that nobody asked for", v.Endpoints())
		}
	}
}
