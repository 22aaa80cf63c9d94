package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A token counts for half a minute after its end, so that clocks may differ.
// For a stream it does not: the stream would end at once, and its client would
// reconnect once a second for as long.
func TestExpiredTokenOpensNoStream(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	token := expiredToken(10 * time.Second)
	s.do(call{method: "GET", path: "/notifications", token: token}, 200, nil)
	header := s.do(call{method: "GET", path: "/notifications/stream", token: token}, 401, nil)
	if got := header.Get("WWW-Authenticate"); !strings.Contains(got, "invalid_token") {
		t.Errorf("WWW-Authenticate: %q, want one that says invalid_token", got)
	}
}

// expiredToken returns a token of the development issuer that expired so long
// ago.
func expiredToken(since time.Duration) string {
	claims := fmt.Sprintf(`{"iss":"tests","aud":"cityconnect","sub":"ann","role":"resident","exp":%d}`, time.Now().Add(-since).Unix())
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(strings.Repeat("secret", 6)))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// The cursor is a bounded text, and anything else an error of the client.
func TestBadCursor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", "resident")
	s.do(call{method: "GET", path: "/notifications/stream?last_event_id=" + strings.Repeat("x", 1025), token: ann}, 400, nil)
	s.do(call{method: "GET", path: "/notifications/stream", token: ann,
		headers: map[string]string{"Last-Event-ID": strings.Repeat("x", 1025)}}, 400, nil)
	s.do(call{method: "GET", path: "/notifications/stream?last_event_id=v1.%00", token: ann}, 400, nil)
}
