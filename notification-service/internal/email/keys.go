package email

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Keys hide addresses, codes and tokens from readers of the database, and the ids of
// deliveries from readers of a mail. They are derived from those of the recipients
// (RECIPIENT_KEY), which the database does not have.
type Keys struct {
	ring   *event.Keyring
	macs   [][]byte       // in the order of the ring, the first is in use
	blocks []cipher.Block // likewise
}

// NewKeys returns the Keys of a ring.
func NewKeys(ring *event.Keyring) *Keys {
	k := &Keys{ring: ring, macs: ring.Derive("cityconnect/mail-hashes")}
	for _, key := range ring.Derive("cityconnect/mail-deliveries") {
		block, err := aes.NewCipher(key)
		if err != nil {
			panic(err) // only for a key of another size
		}
		k.blocks = append(k.blocks, block)
	}
	return k
}

// Sizes to which texts are padded before they are sealed, so that their lengths
// reveal nothing.
const (
	addressSize = maxAddress + 2
	codeSize    = 16
	tokenSize   = 32
)

// SealAddress hides an address for the row of a contact.
func (k *Keys) SealAddress(contact uuid.UUID, address string) string {
	return k.ring.SealPadded(contact, address, addressSize)
}

// SealCode hides a code for the body of its delivery.
func (k *Keys) SealCode(contact uuid.UUID, code string) string {
	return k.ring.SealPadded(contact, code, codeSize)
}

// SealToken hides a token for its row.
func (k *Keys) SealToken(contact uuid.UUID, token string) string {
	return k.ring.SealPadded(contact, token, tokenSize)
}

// Open returns the text that was sealed for a contact.
func (k *Keys) Open(contact uuid.UUID, sealed string) (string, error) {
	text, err := k.ring.Open(contact, sealed)
	if err != nil {
		return "", fmt.Errorf("open what a contact has: %w", err)
	}
	return text, nil
}

// AddressHashes returns what an address is found by, for each key, the one in use
// first. Case does not count; anything else does, because only its host knows
// which addresses are the same.
func (k *Keys) AddressHashes(address string) [][]byte {
	hashes := make([][]byte, len(k.macs))
	for i, key := range k.macs {
		hashes[i] = k.hash(key, "address", strings.ToLower(address))
	}
	return hashes
}

// CodeHashes returns what a code for the contact may have been kept as, that of
// the key in use first.
func (k *Keys) CodeHashes(contact uuid.UUID, code string) [][]byte {
	hashes := make([][]byte, len(k.macs))
	for i, key := range k.macs {
		hashes[i] = k.hash(key, "code", contact.String()+" "+code)
	}
	return hashes
}

func (*Keys) hash(key []byte, purpose, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + " " + text))
	return mac.Sum(nil)
}

// NewCode returns a fresh code of six digits.
func NewCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // never, see crypto/rand
	}
	return fmt.Sprintf("%06d", n)
}

// NewToken returns a fresh token that ends mails: 128 random bits, in 22
// characters.
func NewToken() string {
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails, see crypto/rand
	return base64.RawURLEncoding.EncodeToString(token)
}

// linked is a token in a link, with what programs take for a part of it.
var linked = regexp.MustCompile(`^[^A-Za-z0-9_-]*([A-Za-z0-9_-]{22})(?:[^A-Za-z0-9_-].*)?$`)

// LinkToken returns the token at the end of a link. Programs that find links in text
// take the full stop, bracket or quotation mark behind it for a part of it.
func LinkToken(text string) string {
	if found := linked.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return text
}

// TokenHash returns what a token is found by.
func TokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// DeliveryToken returns the name of a delivery in its mail: in its Message-ID and
// in the address that bounces go to. It is the same at each try, reveals nothing,
// and cannot be made by others: one block of AES over the id and eight zeros. The
// key is the oldest, so that a mail which was tried before a new key came has the
// same name afterwards.
func (k *Keys) DeliveryToken(id int64) string {
	var block [aes.BlockSize]byte
	binary.BigEndian.PutUint64(block[:8], uint64(id))
	k.blocks[len(k.blocks)-1].Encrypt(block[:], block[:])
	return encode(block[:])
}

// Delivery returns the id in a token; ok is false if DeliveryToken made none like
// it.
func (k *Keys) Delivery(token string) (id int64, ok bool) {
	data, err := encoding.DecodeString(strings.ToUpper(token))
	if err != nil || len(data) != aes.BlockSize {
		return 0, false
	}
	for _, key := range k.blocks {
		var block [aes.BlockSize]byte
		key.Decrypt(block[:], data)
		if id := int64(binary.BigEndian.Uint64(block[:8])); id > 0 && binary.BigEndian.Uint64(block[8:]) == 0 {
			return id, true
		}
	}
	return 0, false
}

// encoding survives mail servers that change the case of the part before an @.
var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

func encode(data []byte) string { return strings.ToLower(encoding.EncodeToString(data)) }
