package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
)

const secret = "0123456789abcdef0123456789abcdef"

func config() auth.Config {
	return auth.Config{Mode: auth.JWT, Issuer: "https://id.test", Audience: "cityconnect", Secret: secret, RoleClaim: "role", DepartmentsClaim: "departments"}
}

func newVerifier(t testing.TB, cfg auth.Config, options ...auth.Option) *auth.Verifier {
	t.Helper()
	v, err := auth.New(t.Context(), cfg, zerolog.Nop(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims returns good claims with some of them replaced; nil removes one.
func claims(replace jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://id.test", "aud": "cityconnect", "sub": "u-1", "name": "Ana",
		"role": "resident", "exp": time.Now().Add(time.Hour).Unix(),
	}
	for k, v := range replace {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func sign(t testing.TB, method jwt.SigningMethod, kid string, key any, c jwt.MapClaims, header ...string) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	for i := 0; i < len(header); i += 2 { // names and values
		token.Header[header[i]] = header[i+1]
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerifySecret(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	hs := func(c jwt.MapClaims, header ...string) string {
		return sign(t, jwt.SigningMethodHS256, "", []byte(secret), c, header...)
	}
	good := hs(claims(nil))

	for _, tt := range []struct {
		name, token, refused string // refused is in the error; "" means accepted
	}{
		{"good", good, ""},
		{"audience in a list", hs(claims(jwt.MapClaims{"aud": []string{"other", "cityconnect"}})), ""},
		{"expired", hs(claims(jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()})), "expired"},
		{"never expires", hs(claims(jwt.MapClaims{"exp": nil})), "a claim is missing"},
		{"for a day", hs(claims(jwt.MapClaims{"exp": time.Now().Add(24 * time.Hour).Unix()})), ""},
		{"for two days", hs(claims(jwt.MapClaims{"exp": time.Now().Add(48 * time.Hour).Unix()})), "longer than 24h"},
		{"beyond the year 9999", hs(claims(jwt.MapClaims{"exp": 253402300800})), "longer than 24h"},
		{"access token by type", hs(claims(jwt.MapClaims{"at_hash": "x"}), "typ", "at+JWT"), ""},
		{"access token by its whole type", hs(claims(nil), "typ", "application/at+jwt"), ""},
		{"no type", hs(claims(nil), "typ", ""), ""},
		{"logout token", hs(claims(nil), "typ", "logout+jwt"), "another type"},
		{"access token of Dex", hs(claims(jwt.MapClaims{"at_hash": "x"})), ""},
		{"ID token with a hash", hs(claims(jwt.MapClaims{"c_hash": "x"})), "not an access token: it has c_hash"},
		{"ID token of Keycloak", hs(claims(jwt.MapClaims{"typ": "ID"})), "not an access token: it has the typ ID"},
		{"refresh token of Keycloak", hs(claims(jwt.MapClaims{"typ": "Refresh"})), "not an access token: it has the typ Refresh"},
		{"access token of Keycloak", hs(claims(jwt.MapClaims{"typ": "Bearer", "azp": "page", "auth_time": 1})), ""},
		{"ID token of Cognito", hs(claims(jwt.MapClaims{"token_use": "id"})), "not an access token: it has the token_use id"},
		{"critical extension", hs(claims(nil), "crit", "exp"), "extension"},
		{"name that turns round", hs(claims(jwt.MapClaims{"name": "A\u202ena"})), ""},
		{"exp as text", hs(claims(jwt.MapClaims{"exp": "1795773600"})), "exp must be a number"},
		{"exp as a list", hs(claims(jwt.MapClaims{"exp": []int{1795773600}})), "exp must be a number"},
		{"nbf as text", hs(claims(jwt.MapClaims{"nbf": "now"})), "nbf must be a number"},
		{"iss as a list", hs(claims(jwt.MapClaims{"iss": []string{"https://id.test"}})), "iss must be a text"},
		{"aud of another type", hs(claims(jwt.MapClaims{"aud": 7})), "aud must be a text or a list of texts"},
		{"name of 200 characters", hs(claims(jwt.MapClaims{"name": strings.Repeat("💡", 200)})), ""},
		{"name of 201 characters", hs(claims(jwt.MapClaims{"name": strings.Repeat("💡", 201)})), ""},
		{"not yet valid", hs(claims(jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()})), "not valid yet"},
		{"wrong audience", hs(claims(jwt.MapClaims{"aud": "elsewhere"})), "another audience"},
		{"wrong issuer", hs(claims(jwt.MapClaims{"iss": "https://evil.test"})), "another issuer"},
		{"unknown role", hs(claims(jwt.MapClaims{"role": "mayor"})), "no role"},
		{"no role", hs(claims(jwt.MapClaims{"role": nil})), "no role"},
		{"no subject", hs(claims(jwt.MapClaims{"sub": nil})), "subject"},
		{"subject of another type", hs(claims(jwt.MapClaims{"sub": 7})), "subject"},
		{"NUL in the subject", hs(claims(jwt.MapClaims{"sub": "a\x00b"})), "subject"},
		{"subject too long", hs(claims(jwt.MapClaims{"sub": strings.Repeat("x", 256)})), "subject"},
		{"newline behind the name", hs(claims(jwt.MapClaims{"name": "\u200bAna\n\x00"})), ""},
		{"another key", sign(t, jwt.SigningMethodHS256, "", []byte(strings.Repeat("y", 32)), claims(nil)), "signature"},
		{"another HMAC", sign(t, jwt.SigningMethodHS512, "", []byte(secret), claims(nil)), "its algorithm must be one of HS256"},
		{"alg none", sign(t, jwt.SigningMethodNone, "", jwt.UnsafeAllowNoneSignatureType, claims(nil)), "its algorithm must be one of HS256"},
		{"an alg that nobody knows", hs(claims(nil), "alg", "ES256K"), "its algorithm must be one of HS256"},
		{"altered", good[:len(good)-4] + "AAAA", "signature"},
		{"rubbish", "rubbish", "not a JWT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := v.Verify(t.Context(), tt.token)
			checkVerified(t, p, err, tt.token, tt.refused)
		})
	}
}

// A name is shown and decides nothing: it locks nobody out.
func TestNameIsCleaned(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	for _, tt := range []struct {
		name any
		want string
	}{
		{"\u202bليلى\u202c", "\u202bليلى\u202c"},
		{"\u202bليلى", "ليلى"},
		{"\u202eAna\u202c", "Ana"},
		{"Ana\r\nLee", "Ana Lee"},
		{"Ana\tLee\x00\x1b", "Ana Lee"},
		{"\ufeff\u200b", ""},
		{strings.Repeat("ä", 300), strings.Repeat("ä", 200)},
		{strings.Repeat("x", 199) + "e\u0301", strings.Repeat("x", 199)},
		{7, ""}, {[]string{"Ana"}, ""}, {nil, ""}, {"", ""},
	} {
		p, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(jwt.MapClaims{"name": tt.name})))
		if err != nil || p.Name != tt.want {
			t.Errorf("%+q: name %+q, %v; want %+q", tt.name, p.Name, err, tt.want)
		}
	}
}

func checkVerified(t *testing.T, p auth.Principal, err error, token, refused string) {
	t.Helper()
	if refused == "" {
		if err != nil || p.ID != "u-1" || p.Name != "Ana" && len(p.Name) != 800 || p.Role != auth.Resident || time.Until(p.Expires) < 59*time.Minute {
			t.Errorf("Verify: got %+v, %v; want Ana accepted", p, err)
		}
		return
	}
	if !errors.Is(err, auth.ErrToken) || !strings.Contains(err.Error(), refused) {
		t.Fatalf("Verify: got %+v, error %v; want refused for %q", p, err, refused)
	}
	if strings.Contains(err.Error(), token) {
		t.Errorf("Verify: the error shows the token: %v", err)
	}
}

func TestVerifyRoleClaim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		claim  string
		claims jwt.MapClaims
		want   auth.Role
	}{
		{"role", jwt.MapClaims{"role": []string{"offline_access", "official", "resident"}}, auth.Official},
		{"realm_access.roles", jwt.MapClaims{"realm_access": map[string]any{"roles": []string{"resident", "operator"}}}, auth.Operator},
		{"https://city.test/role", jwt.MapClaims{"https://city.test/role": "official"}, auth.Official},
		{"realm_access.roles", jwt.MapClaims{"realm_access": "operator"}, ""},
	} {
		cfg := config()
		cfg.RoleClaim = tt.claim
		token := sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(tt.claims))
		p, err := newVerifier(t, cfg).Verify(t.Context(), token)
		if p.Role != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("claim %s of %v: got role %q, error %v; want %q", tt.claim, tt.claims, p.Role, err, tt.want)
		}
	}
}

// The departments of an official are codes, by themselves, in a list or in one text; what is
// no code gives nothing, and neither does the claim of anybody else.
func TestVerifyDepartmentsClaim(t *testing.T) {
	t.Parallel()
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("d%02d", i)
	}
	for _, tt := range []struct {
		claim  string
		claims jwt.MapClaims
		want   []string
	}{
		{"departments", jwt.MapClaims{"role": "official", "departments": []string{"roads", "parks", "roads"}}, []string{"parks", "roads"}},
		{"departments", jwt.MapClaims{"role": "moderator", "departments": "roads parks,water-2"}, []string{"parks", "roads", "water-2"}},
		{"groups", jwt.MapClaims{"role": "official", "groups": []string{"/Roads", "/city/parks", "A team", "x'--"}}, []string{"roads"}},
		{"city.departments", jwt.MapClaims{"role": "official", "city": map[string]any{"departments": "roads"}}, []string{"roads"}},
		{"departments", jwt.MapClaims{"role": "official", "departments": many}, many[:50]},
		{"departments", jwt.MapClaims{"role": "official", "departments": 7}, nil},
		{"departments", jwt.MapClaims{"role": "official", "departments": []string{}}, nil},
		{"departments", jwt.MapClaims{"role": "official"}, nil},
		{"departments", jwt.MapClaims{"role": "resident", "departments": "roads"}, nil},
	} {
		cfg := config()
		cfg.DepartmentsClaim = tt.claim
		p, err := newVerifier(t, cfg).Verify(t.Context(), sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims(tt.claims)))
		if err != nil || !slices.Equal(p.Departments, tt.want) {
			t.Errorf("claim %s of %v: got %q, error %v; want %q", tt.claim, tt.claims, p.Departments, err, tt.want)
		}
	}
}

// An issuer is a JWKS server whose keys a test can change.
type issuer struct {
	url   string
	keys  atomic.Pointer[[]jwkset.JWK]
	away  atomic.Bool
	asked atomic.Int32
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	is := &issuer{}
	is.keys.Store(new([]jwkset.JWK))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is.asked.Add(1)
		if is.away.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		store := jwkset.NewMemoryStorage()
		for _, k := range *is.keys.Load() {
			if err := store.KeyWrite(r.Context(), k); err != nil {
				t.Error(err)
			}
		}
		body, err := store.JSONPublic(r.Context())
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	is.url = srv.URL
	return is
}

// publish replaces what the issuer shows by one key.
func (is *issuer) publish(t testing.TB, kid string, alg jwkset.ALG, key crypto.Signer) {
	t.Helper()
	is.publishAs(t, jwkset.JWKMetadataOptions{KID: kid, ALG: alg}, key)
}

func (is *issuer) publishAs(t testing.TB, metadata jwkset.JWKMetadataOptions, key crypto.Signer) {
	t.Helper()
	jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: metadata, Validate: jwkset.JWKValidateOptions{SkipAll: true}})
	if err != nil {
		t.Fatal(err)
	}
	is.keys.Store(&[]jwkset.JWK{jwk})
}

// config returns that of a service which believes the issuer.
func (is *issuer) config() auth.Config {
	cfg := config()
	cfg.Secret, cfg.JWKSURL = "", is.url
	return cfg
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestVerifyJWKS(t *testing.T) {
	t.Parallel()
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ecKey384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	ecKey521 := must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	for _, tt := range []struct {
		alg    jwkset.ALG
		method jwt.SigningMethod
		key    crypto.Signer
	}{
		{jwkset.AlgRS256, jwt.SigningMethodRS256, rsaKey},
		{jwkset.AlgRS384, jwt.SigningMethodRS384, rsaKey},
		{jwkset.AlgRS512, jwt.SigningMethodRS512, rsaKey},
		{jwkset.AlgPS256, jwt.SigningMethodPS256, rsaKey},
		{jwkset.AlgPS384, jwt.SigningMethodPS384, rsaKey},
		{jwkset.AlgPS512, jwt.SigningMethodPS512, rsaKey},
		{"", jwt.SigningMethodPS256, rsaKey}, // many issuers do not tell the algorithm
		{"", jwt.SigningMethodES384, ecKey384},
		{jwkset.AlgES256, jwt.SigningMethodES256, ecKey},
		{jwkset.AlgES384, jwt.SigningMethodES384, ecKey384},
		{jwkset.AlgES512, jwt.SigningMethodES512, ecKey521},
		{jwkset.AlgEdDSA, jwt.SigningMethodEdDSA, edKey},
	} {
		t.Run(tt.alg.String()+" "+tt.method.Alg(), func(t *testing.T) {
			t.Parallel()
			is := newIssuer(t)
			is.publish(t, "k1", tt.alg, tt.key)
			v := newVerifier(t, is.config())
			for _, kid := range []string{"k1", ""} { // without an id, every key is tried
				token := sign(t, tt.method, kid, tt.key, claims(nil))
				p, err := v.Verify(t.Context(), token)
				checkVerified(t, p, err, token, "")
			}
		})
	}
}

// A public key is public: whoever signs with it as an HMAC secret, or with
// nothing at all, must not be believed.
func TestVerifyJWKSConfusion(t *testing.T) {
	t.Parallel()
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	is := newIssuer(t)
	is.publish(t, "k1", "", key) // many issuers do not tell the algorithm
	v := newVerifier(t, is.config())

	der := must(x509.MarshalPKIXPublicKey(key.Public()))
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, token := range map[string]string{
		"HS256 with the PEM": sign(t, jwt.SigningMethodHS256, "k1", public, claims(nil)),
		"HS256 with the DER": sign(t, jwt.SigningMethodHS256, "k1", der, claims(nil)),
		"none":               sign(t, jwt.SigningMethodNone, "k1", jwt.UnsafeAllowNoneSignatureType, claims(nil)),
		"without a key id":   sign(t, jwt.SigningMethodHS256, "", public, claims(nil)),
	} {
		p, err := v.Verify(t.Context(), token)
		if err == nil {
			t.Errorf("%s: accepted %+v", name, p)
		}
	}
}

func TestVerifyJWKSRotation(t *testing.T) {
	t.Parallel()
	first := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	second := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	is := newIssuer(t)
	is.publish(t, "k1", jwkset.AlgES256, first)
	v := newVerifier(t, is.config())
	before := sign(t, jwt.SigningMethodES256, "k1", first, claims(nil))
	p, err := v.Verify(t.Context(), before)
	checkVerified(t, p, err, before, "")

	is.publish(t, "k2", jwkset.AlgES256, second)
	after := sign(t, jwt.SigningMethodES256, "k2", second, claims(nil))
	p, err = v.Verify(t.Context(), after)
	checkVerified(t, p, err, after, "")
	if p, err = v.Verify(t.Context(), before); err == nil {
		t.Errorf("the withdrawn key is still accepted: %+v", p)
	}
}

// A token that was accepted is not checked again, and is refused all the same
// once it has expired or its user was erased.
func TestVerifyAcceptedBefore(t *testing.T) {
	t.Parallel()
	const leeway = 30 * time.Second
	var erased atomic.Bool
	v := newVerifier(t, config(), auth.RefuseErased(func(user string) bool { return user == "u-1" && erased.Load() }))
	hs := func(c jwt.MapClaims) string { return sign(t, jwt.SigningMethodHS256, "", []byte(secret), c) }

	token := hs(claims(nil))
	for range 2 {
		p, err := v.Verify(t.Context(), token)
		checkVerified(t, p, err, token, "")
	}
	erased.Store(true)
	p, err := v.Verify(t.Context(), token)
	checkVerified(t, p, err, token, "its account was erased")

	other := claims(jwt.MapClaims{"sub": "u-2", "exp": time.Now().Add(2*time.Second - leeway).Unix()})
	token = hs(other)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	for err, deadline := error(nil), time.Now().Add(20*time.Second); err == nil; _, err = v.Verify(t.Context(), token) {
		if time.Now().After(deadline) {
			t.Fatal("an expired token is still accepted")
		}
	}
}

// A key that is published for something else, or that is too weak, is none.
func TestVerifyUsesKeysForSignaturesAlone(t *testing.T) {
	t.Parallel()
	strong, weak := must(rsa.GenerateKey(rand.Reader, 2048)), must(rsa.GenerateKey(rand.Reader, 1024))
	for _, tt := range []struct {
		name     string
		key      *rsa.PrivateKey
		metadata jwkset.JWKMetadataOptions
		accepted bool
	}{
		{"for signatures", strong, jwkset.JWKMetadataOptions{KID: "k1", USE: jwkset.UseSig}, true},
		{"for verifying", strong, jwkset.JWKMetadataOptions{KID: "k1", KEYOPS: []jwkset.KEYOPS{jwkset.KeyOpsVerify}}, true},
		{"for encryption", strong, jwkset.JWKMetadataOptions{KID: "k1", USE: jwkset.UseEnc}, false},
		{"for wrapping keys", strong, jwkset.JWKMetadataOptions{KID: "k1", KEYOPS: []jwkset.KEYOPS{jwkset.KeyOpsWrapKey}}, false},
		{"for another algorithm", strong, jwkset.JWKMetadataOptions{KID: "k1", ALG: jwkset.AlgRS512}, false},
		{"of 1,024 bits", weak, jwkset.JWKMetadataOptions{KID: "k1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			is := newIssuer(t)
			is.publishAs(t, tt.metadata, tt.key)
			v := newVerifier(t, is.config())
			for _, kid := range []string{"k1", ""} {
				_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, kid, tt.key, claims(nil)))
				if (err == nil) != tt.accepted || err != nil && !errors.Is(err, auth.ErrToken) {
					t.Errorf("kid %q: error %v, want accepted: %t", kid, err, tt.accepted)
				}
			}
		})
	}
}

// While the issuer is away no token is called bad, and readiness
// says what is missing. Once it is back, the same token is good.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	is := newIssuer(t)
	is.publish(t, "k1", jwkset.AlgES256, key)
	is.away.Store(true)
	v := newVerifier(t, is.config())
	token := sign(t, jwt.SigningMethodES256, "k1", key, claims(nil))
	if _, err := v.Verify(t.Context(), token); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Verify: %v, want an error of kind unavailable", err)
	}
	probe := v.Checks()[0].Probe
	if err := probe(t.Context()); err == nil {
		t.Error("readiness: no error, want that the keys are missing")
	}
	is.away.Store(false)
	for deadline := time.Now().Add(time.Minute); probe(t.Context()) != nil && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the keys are fetched again without a signal
	}
	p, err := v.Verify(t.Context(), token)
	checkVerified(t, p, err, token, "")

	is.away.Store(true) // keys that are known stay
	p, err = v.Verify(t.Context(), token)
	checkVerified(t, p, err, token, "")
}

// Tokens with unknown key ids make the issuer be asked once in a while. Until
// then it is unknown whether the key of a token is a new one.
func TestUnknownKeyIDs(t *testing.T) {
	t.Parallel()
	old := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	fresh := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	is := newIssuer(t)
	is.publish(t, "k1", jwkset.AlgES256, old)
	v := newVerifier(t, is.config())
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, "k1", old, claims(nil))); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, "strange", fresh, claims(nil))); !errors.Is(err, auth.ErrToken) {
		t.Errorf("an unknown key that was asked for: %v, want ErrToken", err)
	}
	is.publish(t, "k2", jwkset.AlgES256, fresh)
	before := is.asked.Load()
	for range 100 {
		if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, "k2", fresh, claims(nil))); fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("a new key that cannot be asked for yet: %v, want an error of kind unavailable", err)
		}
	}
	if got := is.asked.Load() - before; got != 0 {
		t.Errorf("the issuer was asked %d more times, want none", got)
	}
}

// BenchmarkVerify checks the token that a client sends with each request.
func BenchmarkVerify(b *testing.B) {
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	is := newIssuer(b)
	is.publish(b, "k1", jwkset.AlgRS256, key)
	for _, bb := range []struct {
		method jwt.SigningMethod
		key    any
		config auth.Config
	}{
		{jwt.SigningMethodHS256, []byte(secret), config()},
		{jwt.SigningMethodRS256, key, is.config()},
	} {
		b.Run(bb.method.Alg(), func(b *testing.B) {
			v := newVerifier(b, bb.config)
			token := sign(b, bb.method, "", bb.key, claims(nil))
			for b.Loop() {
				if _, err := v.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
