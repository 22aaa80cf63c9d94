package push

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	webpush "github.com/SherClockHolmes/webpush-go"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Keys hide devices from readers of the database. They are derived from those of the
// recipients (RECIPIENT_KEY), which the database does not have.
type Keys struct {
	ring *event.Keyring
	macs [][]byte // in the order of the ring, the first is in use
}

// NewKeys returns the Keys of a ring.
func NewKeys(ring *event.Keyring) *Keys {
	return &Keys{ring: ring, macs: ring.Derive("cityconnect/push-hashes")}
}

// keysSize is what the keys of a device are padded to before they are sealed.
const keysSize = 160

// A Subscription is what a browser says of itself (W3C Push API, PushSubscription):
// the address that is sent to, a public key of P-256 and a secret of 16 bytes,
// both in base64url.
type Subscription struct {
	Endpoint string
	P256DH   string
	Auth     string
}

// Check returns the fault of the keys of s, for the client.
func (s Subscription) Check() error {
	point, err := base64.RawURLEncoding.DecodeString(s.P256DH)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return fault.NewInvalid("/keys/p256dh", "must be the base64url of a public key of P-256, as the browser gave it")
	}
	if secret, err := base64.RawURLEncoding.DecodeString(s.Auth); err != nil || len(secret) != 16 {
		return fault.NewInvalid("/keys/auth", "must be the base64url of 16 bytes, as the browser gave it")
	}
	return nil
}

// Seal hides a subscription for the row of a device.
func (k *Keys) Seal(device uuid.UUID, s Subscription) (endpoint, keys string) {
	encoded, err := json.Marshal(webpush.Keys{P256dh: s.P256DH, Auth: s.Auth})
	if err != nil {
		panic(err) // two strings
	}
	return k.ring.SealPadded(device, s.Endpoint, maxEndpoint+1), k.ring.SealPadded(device, string(encoded), keysSize)
}

// open returns the subscription of a device.
func (k *Keys) open(d *Device) (*webpush.Subscription, error) {
	endpoint, err := k.ring.Open(d.ID, d.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("open what a device has: %w", err)
	}
	keys, err := k.ring.Open(d.ID, d.Keys)
	if err != nil {
		return nil, fmt.Errorf("open what a device has: %w", err)
	}
	s := &webpush.Subscription{Endpoint: endpoint}
	if json.Unmarshal([]byte(keys), &s.Keys) != nil {
		return nil, errors.New("read the keys of a device") // the error would quote them
	}
	return s, nil
}

// EndpointHashes returns what the address of a device is found by, for each key,
// the one in use first.
func (k *Keys) EndpointHashes(endpoint string) [][]byte {
	hashes := make([][]byte, len(k.macs))
	for i, key := range k.macs {
		hashes[i] = hash(key, "endpoint "+endpoint)
	}
	return hashes
}

// Topic returns the topic that pushes to a device about one thing share: a newer push
// replaces an undelivered one, and one that is still shown. It reveals nothing to the
// push service, not even that two devices get pushes about the same report: 24 bytes
// of an HMAC, in the 32 characters that a topic may have (RFC 8030 section 5.4).
func (k *Keys) Topic(device, report uuid.UUID, kind string) string {
	return encode(hash(k.macs[0], "topic "+device.String()+" "+report.String()+" "+kind)[:24])
}

func hash(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
