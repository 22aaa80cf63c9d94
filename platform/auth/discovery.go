package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/address"
	"github.com/cityconnect/cityconnect/platform/text"
)

// shownIssuer is how much of another issuer's name an error shows, in characters.
const shownIssuer = 200

// A provider is what an identity provider says of itself (OpenID Connect Discovery
// 1.0, 3; RFC 8414, 2), as far as it is used here.
type provider struct {
	Issuer                string `json:"issuer"`
	JWKSURI               string `json:"jwks_uri"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
}

// keysAddress returns where the keys are: AUTH_JWKS_URL, or what the provider says of
// itself, which is read again as often as the keys are. fresh says that reading it
// once more at once would tell nothing new.
func (i *issuer) keysAddress(ctx context.Context) (keys string, fresh bool, err error) {
	if i.url != "" {
		return i.url, true, nil
	}
	i.mu.Lock()
	known, readAt := i.provider, i.providerRead
	i.mu.Unlock()
	if time.Since(readAt) < refreshEvery {
		return known.JWKSURI, false, nil
	}
	began := time.Now()
	found, err := i.discover(ctx)
	switch {
	case err == nil:
		i.mu.Lock()
		defer i.mu.Unlock()
		i.provider, i.providerRead = found, began
		return found.JWKSURI, true, nil
	case known.JWKSURI == "":
		return "", true, fmt.Errorf("find the keys of AUTH_ISSUER, as AUTH_JWKS_URL is not set: %w", err)
	}
	i.log.Warn().Err(err).Msg("reading the addresses of AUTH_ISSUER failed, those that were read before stay")
	return known.JWKSURI, true, nil
}

// movedKeys returns where the keys are now, after they could not be read at an
// address that was found earlier; "" if that is still the place.
func (i *issuer) movedKeys(ctx context.Context, before string) string {
	i.mu.Lock()
	i.providerRead = time.Time{}
	i.mu.Unlock()
	now, _, err := i.keysAddress(ctx)
	if err != nil || now == before {
		return ""
	}
	return now
}

// discover reads what the provider says of itself.
func (i *issuer) discover(ctx context.Context) (provider, error) {
	below, before := wellKnown(i.name)
	from := below
	body, err := i.get(ctx, from)
	if errors.Is(err, errNotFound) {
		missing := err
		from = before
		if body, err = i.get(ctx, from); err != nil {
			err = fmt.Errorf("%w; %w", missing, err)
		}
	}
	if err != nil {
		return provider{}, err
	}
	var found provider
	if err := json.Unmarshal(body, &found); err != nil {
		return provider{}, fmt.Errorf("read %s: %w", from, err)
	}
	if found.Issuer != i.name {
		return provider{}, fmt.Errorf("%s is about the issuer %q; AUTH_ISSUER must be the same, letter by letter",
			from, text.Shorten(found.Issuer, shownIssuer))
	}
	if !isSafe(found.JWKSURI, i.name) {
		return provider{}, fmt.Errorf("%s has no jwks_uri that begins with https://", from)
	}
	return found, nil
}

// endpoints returns where the provider signs people in, once that is known.
func (i *issuer) endpoints() []string {
	i.mu.Lock()
	found := i.provider
	i.mu.Unlock()
	var safe []string
	for _, endpoint := range []string{found.AuthorizationEndpoint, found.TokenEndpoint} {
		if isSafe(endpoint, i.name) {
			safe = append(safe, endpoint)
		}
	}
	return safe
}

// wellKnown returns where a provider may describe itself: below its path, and, where
// that does not exist, before it (OpenID Connect Discovery 1.0, 4.1; RFC 8414, 3.1).
func wellKnown(issuer string) (below, before string) {
	issuer = strings.TrimSuffix(issuer, "/")
	origin, path := issuer, ""
	if _, rest, ok := strings.Cut(issuer, "://"); ok {
		if slash := strings.Index(rest, "/"); slash >= 0 {
			path = rest[slash:]
			origin = strings.TrimSuffix(issuer, path)
		}
	}
	return issuer + "/.well-known/openid-configuration", origin + "/.well-known/oauth-authorization-server" + path
}

// isDiscoverable reports whether a provider of that name can be asked where its keys
// are: over TLS, or on this machine.
func isDiscoverable(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && u.RawQuery == "" && !u.ForceQuery && !strings.Contains(issuer, "#") && isSafe(issuer, issuer)
}

// isSafe reports whether what is at an address can be believed: it is reached over
// TLS, or on this machine, where the issuer is as well.
func isSafe(raw, issuer string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || address.Fault(raw) != "" {
		return false
	}
	return u.Scheme == "https" || isLoopback(raw) && isLoopback(issuer)
}

// isLoopback reports whether an address leads to this machine without TLS.
func isLoopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
