package event

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/trace"
)

// RecipientHeader is the AMQP header that carries the sealed recipient.
const RecipientHeader = "x-recipient"

// TraceHeader is the AMQP header that carries the W3C trace context.
const TraceHeader = trace.Header

// NotBeforeHeader is the AMQP header that says when a message may have its
// effect, in Unix milliseconds. Before that it waits.
const NotBeforeHeader = "x-not-before"

// TraceID returns the id of the trace in the value of a TraceHeader, by which the logs
// of both services identify a request, or "" if there is none: anyone with rights at
// the broker can write a header.
func TraceID(header any) string {
	text, _ := header.(string)
	return trace.ID(text)
}

// ErrSealed says that a sealed recipient does not open: it was altered, it
// belongs to another report, or its key is not in the Keyring.
var ErrSealed = errors.New("sealed recipient does not open")

const (
	// keySize is that of AES-256.
	keySize = 32
	// recipientSize is what the id of a user is padded to: the 255 bytes that
	// package auth lets pass, and the mark behind them.
	recipientSize = 255 + 1
	// padded is the form of a sealed recipient.
	padded = "v2"
)

var keyIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// A Keyring seals the id of a report's owner for the way through the broker,
// so that neither a queue, a dead letter nor an operator's screen shows it.
// The first key seals; every key opens, which lets keys be rotated.
//
// A sealed recipient reads "v2.<key id>.<base64url of nonce and ciphertext>":
// AES-256-GCM (NIST SP 800-38D) with a random nonce, and the report's id as
// associated data, so that a recipient cannot be moved to another report. The
// text is padded to a fixed size (ISO/IEC 7816-4), because the ciphertext is
// as long as the text: without it the length of an id would distinguish
// reporters.
type Keyring struct {
	sealID string
	aeads  map[string]cipher.AEAD
	keys   [][]byte // in the order in which they were given
}

// ParseKeyring reads "<key id>:<base64 of 32 bytes>", several of them joined
// by commas. The error never shows a key.
func ParseKeyring(s string) (*Keyring, error) {
	k := &Keyring{aeads: make(map[string]cipher.AEAD)}
	for i, entry := range strings.Split(s, ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok || !keyIDPattern.MatchString(id) {
			return nil, fmt.Errorf("key %d: must be <key id>:<base64 of 32 bytes>, such as k1:$(openssl rand -base64 32)", i+1)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("key %q: must be the base64 of %d bytes, such as $(openssl rand -base64 32)", id, keySize)
		}
		if _, dup := k.aeads[id]; dup {
			return nil, fmt.Errorf("key %q is given twice", id)
		}
		k.keys = append(k.keys, key)
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", id, err)
		}
		if k.aeads[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("key %q: %w", id, err)
		}
		if i == 0 {
			k.sealID = id
		}
	}
	return k, nil
}

// Seal hides userID in a form that only a holder of the key can open, and
// only for this report. It is as long for one user as for another.
func (k *Keyring) Seal(report uuid.UUID, userID string) string {
	return k.SealPadded(report, userID, recipientSize)
}

// SealPadded hides text, like Seal, in a form that Open opens with the same
// id. Texts of fewer than size bytes give results of one length; a longer text
// is padded to the next multiple of size.
func (k *Keyring) SealPadded(id uuid.UUID, text string, size int) string {
	plain := make([]byte, (len(text)/size+1)*size)
	plain[copy(plain, text)] = endOfText
	sealed := k.aeads[k.sealID].Seal(nil, nil, plain, id[:])
	return padded + "." + k.sealID + "." + base64.RawURLEncoding.EncodeToString(sealed)
}

// endOfText is the first byte of the padding; zeros follow it.
const endOfText = 0x80

// Open returns the text that Seal or SealPadded hid, or ErrSealed.
func (k *Keyring) Open(id uuid.UUID, sealed string) (string, error) {
	parts := strings.SplitN(sealed, ".", 3)
	if len(parts) != 3 || parts[0] != padded {
		return "", fmt.Errorf("%w: not of the form %s.<key id>.<data>", ErrSealed, padded)
	}
	aead, ok := k.aeads[parts[1]]
	if !ok {
		return "", fmt.Errorf("%w: no key %q", ErrSealed, parts[1])
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return "", fmt.Errorf("%w: not base64url", ErrSealed)
	}
	plain, err := aead.Open(nil, nil, data, id[:])
	if err != nil {
		return "", fmt.Errorf("%w: altered, or sealed for another report", ErrSealed)
	}
	text, ok := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{endOfText})
	if !ok {
		return "", fmt.Errorf("%w: not padded", ErrSealed)
	}
	return string(text), nil
}

// Derive returns a secret for another purpose from each key, in their order
// (HKDF-SHA256, RFC 5869). Secrets of different purposes reveal nothing of one
// another, nor of the keys.
func (k *Keyring) Derive(purpose string) [][]byte {
	secrets := make([][]byte, len(k.keys))
	for i, key := range k.keys {
		secret, err := hkdf.Key(sha256.New, key, nil, purpose, keySize)
		if err != nil {
			panic(err) // only for more than 255 blocks
		}
		secrets[i] = secret
	}
	return secrets
}

// NewKey returns a fresh random key under id, in the form ParseKeyring reads.
func NewKey(id string) string {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	return id + ":" + base64.StdEncoding.EncodeToString(key)
}
