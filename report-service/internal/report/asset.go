package report

import (
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// An Asset is a thing of the city that a report is about; the zero value is none.
type Asset struct {
	ID   int32
	Key  string // its layer and code, with a slash between them
	Name string // may be empty
}

// ErrNoAsset refuses a report on a thing that the city does not have, or no longer.
var ErrNoAsset = fault.NewInvalid("/asset", "the city has no such thing, or has it no longer")

// A PlacedAsset is an asset where it is.
type PlacedAsset struct {
	Asset
	Category int32 // of most reports on it
	Position Position
	Open     *AssetReport // the oldest on it that everybody sees; nil without one
}

// An AssetReport is an open report on a thing.
type AssetReport struct {
	ID        uuid.UUID
	Title     string
	Status    Status
	CreatedAt time.Time
	Photos    []uuid.UUID
}

// An AssetLayer is the assets of one kind.
type AssetLayer struct {
	Name      string
	Category  int32 // of most reports on them
	Count     int32
	ChangedAt time.Time
}

// An AssetChange is what a file has changed in a layer.
type AssetChange struct {
	Count, Added, Changed, Removed int32
}
