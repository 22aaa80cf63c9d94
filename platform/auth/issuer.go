package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/fault"
)

const (
	// refreshEvery is how often the published keys are read again.
	refreshEvery = 10 * time.Minute
	// unknownEvery is how often a token with an unknown key id may make us read
	// them before that, so that strangers cannot make us hammer the issuer.
	unknownEvery = 10 * time.Second
	// fetchTimeout bounds one answer of the issuer. A reading, for which such a token
	// waits, takes one or, where the keys' address has to be found, a few of them.
	fetchTimeout = 3 * time.Second
	// maxAnswer is far above what issuers publish.
	maxAnswer = 1 << 20
	// minRSABits is what RFC 7518 (3.3) demands of RS256.
	minRSABits = 2048
)

var (
	// errUnknownKey says that the issuer was asked, and has no such key.
	errUnknownKey = errors.New("unknown key")
	// errNotFound says that the issuer has nothing at an address.
	errNotFound = errors.New("the issuer answered 404 Not Found")
)

// An issuer has the keys that an identity provider publishes as a JSON Web Key
// Set (RFC 7517), at an address that is given or found by the issuer's name.
//
//	none yet ──read──► known ──every 10 min, and for an unknown key id──► known
//	   └── tokens cannot be judged: Unavailable        └── a reading fails: the old keys stay
type issuer struct {
	name   string
	url    string // of the keys; "" where it is found by the name
	client http.Client
	log    zerolog.Logger

	started chan struct{} // closed once run has tried to read the keys

	// asking is held while the keys are read because of an unknown key id:
	// concurrent requests use what the first one has read.
	asking  sync.Mutex
	askedAt time.Time // guarded by asking

	mu     sync.Mutex
	read   time.Time // when the keys were last read; zero if never
	keys   []publicKey
	failed error // of the last reading; nil if it succeeded

	provider     provider  // as it last described itself; without a url
	providerRead time.Time // when that was last read; zero to read it at the next need
}

// A publicKey is a key that signatures may be checked with.
type publicKey struct {
	id   string
	algs []string
	key  any
}

// newIssuer returns the issuer of that name with its keys at url. Without a url it is
// asked for it, and what it answers must be at its own address: no redirect is followed.
func newIssuer(name, url string, log zerolog.Logger) *issuer {
	i := &issuer{name: name, url: url, client: http.Client{Timeout: fetchTimeout}, log: log, started: make(chan struct{})}
	if url == "" {
		i.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return i
}

// run keeps the keys fresh until ctx ends.
func (i *issuer) run(ctx context.Context) {
	retry := backoff.Backoff{First: time.Second, Max: 30 * time.Second}
	for first := true; ; first = false {
		pause := refreshEvery
		if i.refresh(ctx) == nil {
			retry.Reset()
		} else {
			pause = retry.Next()
		}
		if first {
			close(i.started)
		}
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// probe fails as long as no key has been read: tokens cannot be judged.
func (i *issuer) probe(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.read.IsZero():
		return nil
	case i.failed != nil:
		return fmt.Errorf("the issuer's keys have not been read yet: %w", i.failed)
	}
	return errors.New("the issuer's keys have not been read yet")
}

// keyOf returns the key that checks the signature of token, errUnknownKey, or an
// error of kind Unavailable if the issuer cannot be reached now.
func (i *issuer) keyOf(ctx context.Context, token *jwt.Token) (any, error) {
	id, hasID := token.Header["kid"].(string)
	if !hasID && token.Header["kid"] != nil {
		return nil, errUnknownKey
	}
	alg := token.Method.Alg()
	began := time.Now()
	<-i.started // at most for the first reading
	if key := i.find(alg, id, hasID); key != nil {
		return key, nil
	}
	if !hasID && i.readSince(time.Time{}) {
		return nil, errUnknownKey
	}
	i.asking.Lock()
	defer i.asking.Unlock()
	key := i.find(alg, id, hasID) // a concurrent request may have read it
	switch {
	case key != nil:
		return key, nil
	case i.readSince(began):
		return nil, errUnknownKey
	case time.Since(i.askedAt) < unknownEvery:
		return nil, unavailable(errors.New("asked a moment ago"))
	}
	i.askedAt = time.Now()
	if err := i.refresh(context.WithoutCancel(ctx)); err != nil { // it is for the others, too
		return nil, unavailable(err)
	}
	if key := i.find(alg, id, hasID); key != nil {
		return key, nil
	}
	return nil, errUnknownKey
}

func unavailable(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Msg: "the identity provider cannot be asked for its keys at the moment; your sign-in is kept", Err: err}
}

// find returns the key for alg with the id, or all that serve alg if the token
// names none; nil if there is no such key.
func (i *issuer) find(alg, id string, hasID bool) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jwt.VerificationKeySet
	for _, k := range i.keys {
		if slices.Contains(k.algs, alg) && (k.id == id || !hasID) {
			set.Keys = append(set.Keys, k.key)
		}
	}
	if len(set.Keys) == 0 {
		return nil
	}
	return set
}

// readSince reports whether the keys have been read after t.
func (i *issuer) readSince(t time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.read.After(t)
}

// keysRead returns when the keys were last read; a Verifier with a secret has no
// issuer, and its key never changes.
func (i *issuer) keysRead() time.Time {
	if i == nil {
		return time.Time{}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.read
}

// refresh reads the keys. After an error the old ones stay.
func (i *issuer) refresh(ctx context.Context) error {
	began := time.Now()
	keys, err := i.fetch(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failed = err; err != nil {
		if ctx.Err() == nil {
			i.log.Warn().Err(err).Msg("reading the issuer's keys failed, will try again")
		}
		return err
	}
	i.read, i.keys = began, keys
	return nil
}

func (i *issuer) fetch(ctx context.Context) ([]publicKey, error) {
	from, fresh, err := i.keysAddress(ctx)
	if err != nil {
		return nil, err
	}
	body, err := i.get(ctx, from)
	if err != nil && !fresh {
		if moved := i.movedKeys(ctx, from); moved != "" {
			body, err = i.get(ctx, moved)
		}
	}
	if err != nil {
		return nil, err
	}
	return i.parse(body)
}

// get returns what the issuer has at an address.
func (i *issuer) get(ctx context.Context, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := i.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("read %s: %w", from, errNotFound)
	default:
		return nil, fmt.Errorf("read %s: the issuer answered %s", from, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("read %s: the answer has more than %d bytes", from, maxAnswer)
	}
	return body, nil
}

// parse returns the keys of a key set that signatures may be checked with.
func (i *issuer) parse(body []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("read key set: it has no keys")
	}
	var keys []publicKey
	for _, raw := range set.Keys {
		jwk, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue // of a kind that we do not know
		}
		if key, ok := usable(jwk); ok {
			keys = append(keys, key)
		} else {
			i.log.Info().Str("key_id", jwk.Marshal().KID).Msg("ignoring an issuer key that is unsuitable for verifying signatures")
		}
	}
	return keys, nil
}

// publicKeyMethods are the algorithms of signatures that are checked with an issuer's
// key: all of RFC 7518 (3.1) and RFC 8037 that the curves and hashes of Go have.
var publicKeyMethods = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// usable returns jwk as a key that signatures may be checked with, unless it is
// for something else, for another algorithm, or too weak.
func usable(jwk jwkset.JWK) (publicKey, bool) {
	meta := jwk.Marshal()
	k := publicKey{id: meta.KID, key: jwk.Key()}
	switch key := jwk.Key().(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() >= minRSABits {
			k.algs = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			k.algs = []string{"ES256"}
		case elliptic.P384():
			k.algs = []string{"ES384"}
		case elliptic.P521():
			k.algs = []string{"ES512"}
		}
	case ed25519.PublicKey:
		k.algs = []string{"EdDSA"}
	}
	if alg := meta.ALG.String(); alg != "" {
		k.algs = slices.DeleteFunc(k.algs, func(a string) bool { return a != alg })
	}
	forSignatures := (meta.USE == "" || meta.USE == jwkset.UseSig) &&
		(len(meta.KEYOPS) == 0 || slices.Contains(meta.KEYOPS, jwkset.KeyOpsVerify))
	return k, len(k.algs) > 0 && forSignatures
}
