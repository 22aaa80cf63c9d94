package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	// secretPrefix marks a secret of Standard Webhooks whose signatures are v1.
	secretPrefix = "whsec_"
	// secretSize is the 32 bytes that the specification's largest hash has.
	secretSize = 32
	// sealedSize is what a secret is padded to before it is sealed.
	sealedSize = 64
)

// RotationPeriod is how long the secret before a rotation signs beside the new
// one unless the operator says otherwise, MaxRotationPeriod how long at most.
const (
	RotationPeriod    = 24 * time.Hour
	MaxRotationPeriod = 7 * 24 * time.Hour
)

// NewSecret returns a fresh signing secret: whsec_<base64 of 32 random bytes>.
func NewSecret() string {
	key := make([]byte, secretSize)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// SealSecret hides the secret of an endpoint for its row. It opens with the
// same keys for this endpoint alone.
func SealSecret(keys *event.Keyring, endpoint uuid.UUID, secret string) string {
	return keys.SealPadded(endpoint, secret, sealedSize)
}
