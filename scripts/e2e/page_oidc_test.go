package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// clientID is the page's own at the identity provider.
const clientID = "cityconnect-page"

// Where the city has an identity provider, the page sends people there and
// back (authorization code, PKCE), and keeps nothing but the session cookie.
func TestPageOpenIDConnect(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	provider.moveTokens()
	c := prepareStack(t)
	for _, p := range []*process{c.report, c.notification} {
		p.env["AUTH_MODE"], p.env["AUTH_JWT_SECRET"], p.env["AUTH_ISSUER"] = "jwt", "", provider.URL // which says all else
	}
	c.notification.env["PAGE_OIDC_CLIENT_ID"] = clientID
	c.notification.start()
	c.report.start()
	c.awaitReady()
	page := c.reader(nil).open("mine")
	page.do(
		browser.Click("button.primary", "Continue"),
		browser.See(".who", "Ana of the city"),
		browser.See("h1", "My reports"), // where she was
		live,
	)
	kept, err := browser.Ask[string](page.Tab, `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range provider.issued() {
		if strings.Contains(kept, token) {
			t.Errorf("a token is within a script's reach: %s", kept)
		}
	}
	page.checkFaults()
	page.do(browser.Click(".tools button", "Menu"), browser.Click("button", "Sign out"), browser.See(".who", "Sign in"))

	provider.refuse()
	page.do(browser.Go(c.gateway.URL+"/mine"), browser.Click("button.primary", "Continue"), browser.See("[role=alert]", "Signing in failed"))
}

// The session is renewed before its token ends, by the provider and without the
// user, who goes on writing. When the provider has ended its session, the
// session ends at its time with words, and what was written is still there.
func TestPageRenewsItsSession(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	provider.lifetime = 30 * time.Second
	c := prepareStack(t)
	for _, p := range []*process{c.report, c.notification} {
		p.env["AUTH_MODE"], p.env["AUTH_JWT_SECRET"] = "jwt", ""
		p.env["AUTH_ISSUER"], p.env["AUTH_JWKS_URL"] = provider.URL, provider.URL+"/keys"
	}
	c.notification.env["PAGE_OIDC_CLIENT_ID"] = clientID
	c.notification.start()
	c.report.start()
	c.awaitReady()
	reader := c.reader(nil)
	page := reader.open("new?step=3")
	page.do(
		browser.Click(".tools button", "Menu"), browser.Click("dialog a", "Sign in"), browser.Click("button.primary", "Continue"),
		browser.See(".who", "Ana of the city"), live,
		browser.Go(c.gateway.URL+"/new?step=3"), live,
		browser.Fill("What is wrong?", "Written across renewals"),
		browser.Until(`(globalThis.sameDocument = true)`),
	)
	second := reader.open("mine") // which does not renew it once more
	before := provider.renewals()
	eventually.True(t, "the session is renewed twice", func() bool { return provider.renewals() >= before+2 })
	page.do(browser.Until(`globalThis.sameDocument && document.querySelector('input[required]').value === 'Written across renewals'`), browser.See(".who", "Ana of the city"))
	kept, err := browser.Ask[string](page.Tab, `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range provider.issued() {
		if strings.Contains(kept, token) {
			t.Errorf("a token is within a script's reach: %s", kept)
		}
	}
	second.checkFaults()
	second.Close()
	page.checkFaults()

	provider.refuse()
	page.do(browser.See(".banner", "Your session has ended"))
	provider.accept()
	page.do(browser.Click(".banner a", "Sign in"), browser.Click("button.primary", "Continue"), browser.See(".who", "Ana of the city"),
		browser.Until(`document.querySelector('input[required]')?.value === 'Written across renewals'`))
}

// A provider is as much of an OpenID provider as the flow needs.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu       sync.Mutex
	pending  map[string]url.Values // authorization requests by code
	tokens   []string
	refuses  bool
	renewed  int
	tokenAt  string        // the origin of the token endpoint
	lifetime time.Duration // of a token
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, lifetime: time.Hour, key: must(rsa.GenerateKey(rand.Reader, 2048)), pending: make(map[string]url.Values)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discover)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	p.tokenAt = p.URL
	return p
}

// moveTokens gives the token endpoint a host of its own, as large providers do.
func (p *provider) moveTokens() {
	p.t.Helper()
	other := httptest.NewServer(p.Config.Handler)
	p.t.Cleanup(other.Close)
	p.tokenAt = other.URL
}

// refuse makes the provider turn everybody away.
func (p *provider) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = true
}

// accept undoes refuse.
func (p *provider) accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = false
}

// renewals returns how often a token was given without asking the user.
func (p *provider) renewals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewed
}

func (p *provider) issued() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Access-Control-Allow-Origin", "*") // the page is of another origin
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (p *provider) discover(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.tokenAt + "/token", "jwks_uri": p.URL + "/keys",
	})
}

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	encode := base64.RawURLEncoding.EncodeToString
	answer(w, map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize knows everybody by sight.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query, back := r.URL.Query(), url.Values{"state": {r.URL.Query().Get("state")}}
	if p.refuses {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.pending[code] = query
		back.Set("code", code)
	}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token gives out tokens for a code, once, to whoever began the flow.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.PostFormValue("code")
	request, ok := p.pending[code]
	delete(p.pending, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	if !ok || request.Get("code_challenge_method") != "S256" || request.Get("code_challenge") != proof ||
		request.Get("redirect_uri") != r.PostFormValue("redirect_uri") || request.Get("client_id") != clientID {
		p.t.Errorf("the page asked for %v and came with %v", request, r.PostForm)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if request.Get("prompt") == "none" {
		p.renewed++
	}
	access := p.sign(jwt.MapClaims{"aud": audience, "name": "Ana of the city", "role": "resident"})
	id := p.sign(jwt.MapClaims{"aud": clientID, "nonce": request.Get("nonce")})
	p.tokens = append(p.tokens, access, id)
	answer(w, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(p.lifetime.Seconds()), "id_token": id})
}

func (p *provider) sign(claims jwt.MapClaims) string {
	claims["iss"], claims["sub"] = p.URL, "ana"
	claims["iat"], claims["exp"] = time.Now().Unix(), time.Now().Add(p.lifetime).Unix()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "1"
	return must(token.SignedString(p.key))
}
