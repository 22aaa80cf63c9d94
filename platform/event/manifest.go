package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ManifestKey is the routing key of a Manifest. It is not among AllKeys: a manifest is
// about messages, and no effect comes of it.
const ManifestKey Key = "reconciliation.manifest"

// MaxManifestIDs is how many messages a manifest names at most. In base64 they are
// 171 KiB, which is below what consumers take as a body.
const MaxManifestIDs = 8000

// idBytes is the length of a message id in a manifest.
const idBytes = len(uuid.UUID{})

// A Manifest names the messages that the relay recorded as published in a time. Each
// group of consumers compares it with what it has, and so learns of a message that got
// lost. A message that is published again is named again.
//
// Manifests of an epoch are numbered without gaps, and the time of each begins
// where that of the one before ends.
type Manifest struct {
	// Epoch is how often the publisher's database was restored. With each, the numbers
	// start over.
	Epoch  int64 `json:"epoch"`
	Number int64 `json:"number"` // 1, 2, 3 …
	// From to Until is when the messages were recorded, by the clock of the publisher's
	// database; Until is excluded.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// LostBefore says that the broker has lost what was published before that time,
	// and that the publisher is publishing it again. It is zero otherwise.
	LostBefore time.Time `json:"lost_before,omitzero"`
	// Messages has the ids of messages by their routing key.
	Messages map[Key]IDs `json:"messages"`
}

// IDs are message ids, 16 bytes each, in ascending order. JSON has them in base64.
type IDs []byte

// NewIDs returns ids in order.
func NewIDs(ids []uuid.UUID) IDs {
	sorted := slices.SortedFunc(slices.Values(ids), compareIDs)
	packed := make(IDs, 0, len(ids)*idBytes)
	for _, id := range sorted {
		packed = append(packed, id[:]...)
	}
	return packed
}

// All returns the ids.
func (ids IDs) All() []uuid.UUID {
	all := make([]uuid.UUID, 0, len(ids)/idBytes)
	for chunk := range slices.Chunk(ids, idBytes) {
		all = append(all, uuid.UUID(chunk))
	}
	return all
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }

// valid reports whether ids are whole, and each is there once, in order.
func (ids IDs) valid() bool {
	if len(ids)%idBytes != 0 {
		return false
	}
	all := ids.All()
	for i := 1; i < len(all); i++ {
		if compareIDs(all[i-1], all[i]) >= 0 {
			return false
		}
	}
	return true
}

// DecodeManifest reads the body of a manifest. It refuses one that breaks the
// contract, with an error that does not quote the body.
func DecodeManifest(body []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", &FieldError{"body", "of another type"})
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func (m Manifest) validate() error {
	switch {
	case m.Epoch < 0:
		return &FieldError{"epoch", "0 or a positive number"}
	case m.Number < 1:
		return &FieldError{"number", "a positive number"}
	case m.From.IsZero():
		return &FieldError{"from", "a time"}
	case !m.Until.After(m.From):
		return &FieldError{"until", "a time after from"}
	case m.Messages == nil:
		return &FieldError{"messages", "an object"}
	}
	n := 0
	for _, ids := range m.Messages {
		if !ids.valid() {
			return &FieldError{"messages", "ids of 16 bytes in ascending order, in base64"}
		}
		n += len(ids) / idBytes
	}
	if n > MaxManifestIDs {
		return &FieldError{"messages", fmt.Sprintf("at most %d ids", MaxManifestIDs)}
	}
	return nil
}
