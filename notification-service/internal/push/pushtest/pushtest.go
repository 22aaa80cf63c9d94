// Package pushtest is a push service for tests: the far side of Web Push. It reads
// pushes as browsers would (RFC 8291), checks who signed them (RFC 8292), and answers
// by script.
package pushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A Service is a push service. Its clients trust Roots.
type Service struct {
	*httptest.Server
	Host string // as an address of a device has it

	t       testing.TB
	mu      sync.Mutex
	devices map[string]device // by the path of the address
	answer  func(n int) Answer
	asked   int
	taken   []Push
	signal  chan struct{} // closed and replaced with each request
}

// An Answer is what the service says to a request; the zero value takes it.
type Answer struct {
	Status int
	Header http.Header
	Hang   bool // until the client gives up
}

// A device is what only the browser has.
type device struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// A Subscription is the browser's part of a device.
type Subscription struct{ Endpoint, P256DH, Auth string }

// A Push is one that was taken.
type Push struct {
	Endpoint           string
	Topic, TTL, Urgent string
	Subject, Key       string // of who signed it
	Size               int    // as it was sent
	Text               []byte // as the page's service worker gets it
}

// New starts a push service that takes everything.
func New(t testing.TB) *Service {
	t.Helper()
	s := &Service{t: t, devices: make(map[string]device), signal: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of senders that are killed
	s.StartTLS()
	s.Host = strings.TrimPrefix(s.URL, "https://")
	t.Cleanup(s.Close)
	return s
}

// Roots are those that the certificate of the service is checked with.
func (s *Service) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}

// PEM returns its certificate, for a process with SSL_CERT_FILE.
func (s *Service) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Subscribe returns what a further browser says of itself.
func (s *Service) Subscribe() Subscription {
	s.t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	d := device{key: key, auth: make([]byte, 16)}
	_, _ = rand.Read(d.auth) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/send/%d-%s", len(s.devices), rand.Text())
	s.devices[path] = d
	encode := base64.RawURLEncoding.EncodeToString
	return Subscription{Endpoint: s.URL + path, P256DH: encode(key.PublicKey().Bytes()), Auth: encode(d.auth)}
}

// Script sets what the service answers to the request that is the nth, from 0; nil
// takes everything.
func (s *Service) Script(answer func(n int) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.asked = answer, 0
}

// Asked returns how many requests came since the script was set.
func (s *Service) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Taken returns the pushes that the service has, also those whose sender got no
// answer.
func (s *Service) Taken() []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Push(nil), s.taken...)
}

// WaitFor waits for n pushes.
func (s *Service) WaitFor(n int) []Push {
	s.t.Helper()
	for deadline := time.After(eventually.Patience); ; {
		s.mu.Lock()
		taken, signal := append([]Push(nil), s.taken...), s.signal
		s.mu.Unlock()
		if len(taken) >= n {
			return taken
		}
		select {
		case <-signal:
		case <-deadline:
			s.t.Fatalf("%d pushes were taken, want %d", len(taken), n)
		}
	}
}

// ServeHTTP takes one push (RFC 8030 section 5).
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	s.mu.Lock()
	var answer Answer
	if s.answer != nil {
		answer = s.answer(s.asked)
	}
	s.asked++
	d, known := s.devices[r.URL.Path]
	s.mu.Unlock()
	switch {
	case answer.Hang:
		<-r.Context().Done()
		return
	case answer.Status != 0:
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Status)
		_, _ = io.WriteString(w, "about "+r.URL.String()) // which nobody may keep
		s.note(nil)
		return
	case !known:
		s.t.Errorf("a push to %s, which is not a device", r.URL)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p := Push{
		Endpoint: s.URL + r.URL.Path, Topic: r.Header.Get("Topic"), TTL: r.Header.Get("TTL"), Urgent: r.Header.Get("Urgency"), Size: len(body),
	}
	if p.Subject, p.Key, err = signer(r.Header.Get("Authorization"), s.URL); err == nil {
		p.Text, err = d.open(r.Header.Get("Content-Encoding"), body)
	}
	if err != nil {
		s.t.Errorf("a browser cannot read a push: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.note(&p)
	w.WriteHeader(http.StatusCreated)
}

// note keeps a push, if it was taken, and says that something came.
func (s *Service) note(p *Push) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p != nil {
		s.taken = append(s.taken, *p)
	}
	close(s.signal)
	s.signal = make(chan struct{})
}

// signer returns who signed a request to audience (RFC 8292), and with which key.
func signer(authorization, audience string) (subject, key string, err error) {
	var token string
	for part := range strings.SplitSeq(strings.TrimPrefix(authorization, "vapid "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			token = value
		case "k":
			key = value
		}
	}
	point, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return "", "", fmt.Errorf("key: %w", err)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return "", "", fmt.Errorf("key: %w", err)
	}
	claims := new(jwt.RegisteredClaims)
	_, err = jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return public, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired())
	if err == nil && time.Until(claims.ExpiresAt.Time) > 24*time.Hour {
		err = errors.New("it lasts longer than a day")
	}
	if err != nil {
		return "", "", fmt.Errorf("token: %w", err)
	}
	return claims.Subject, key, nil
}

// open returns the text of a push (RFC 8291 section 3.4, RFC 8188 section 2).
func (d device) open(coding string, body []byte) ([]byte, error) {
	const header = 16 + 4 + 1
	if coding != "aes128gcm" || len(body) < header || len(body) < header+int(body[header-1]) {
		return nil, fmt.Errorf("content coding %q of %d bytes", coding, len(body))
	}
	salt, size := body[:16], binary.BigEndian.Uint32(body[16:20])
	sender, sealed := body[header:header+int(body[header-1])], body[header+int(body[header-1]):]
	if int(size) < len(sealed) {
		return nil, fmt.Errorf("a record of %d bytes, must have %d at most", len(sealed), size)
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, fmt.Errorf("the sender's key: %w", err)
	}
	secret, err := d.key.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("agree on a secret: %w", err)
	}
	info := "WebPush: info\x00" + string(d.key.PublicKey().Bytes()) + string(sender)
	derive := func(secret, salt []byte, info string, size int) []byte {
		key, deriveErr := hkdf.Key(sha256.New, secret, salt, info, size)
		err = errors.Join(err, deriveErr)
		return key
	}
	input := derive(secret, d.auth, info, 32)
	key, nonce := derive(input, salt, "Content-Encoding: aes128gcm\x00", 16), derive(input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	plain, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	text, ok := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{2}) // the last record
	if !ok {
		return nil, errors.New("no end of the last record")
	}
	return text, nil
}
