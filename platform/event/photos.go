package event

import "github.com/google/uuid"

// PhotoReason says why a photo is not shown.
type PhotoReason string

// The reasons for which photos are refused.
const (
	PhotoUnsupported PhotoReason = "unsupported" // no picture, or of a format that is not taken
	PhotoTooLarge    PhotoReason = "too_large"   // more pixels than are taken
	PhotoDamaged     PhotoReason = "damaged"     // it ends early, or cannot be read
	PhotoInfected    PhotoReason = "infected"    // the virus scanner found something
	PhotoUnsuitable  PhotoReason = "unsuitable"  // an official decided so
	PhotoFailed      PhotoReason = "failed"      // the fault is ours; another attempt may succeed
)

// PhotoReady says that everybody may see a photo of a report. It does not name the
// uploader.
type PhotoReady struct {
	Subject
	PhotoID    uuid.UUID `json:"photo_id"`
	CategoryID int32     `json:"category_id,omitempty"`
}

// Key returns PhotoReadyKey.
func (*PhotoReady) Key() Key { return PhotoReadyKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoReady) Validate() error {
	return m.check(notNegative("category_id", m.CategoryID), isID("photo_id", m.PhotoID))
}

// PhotoRefused says to the reporter that a photo of the report is not shown. It
// changes nothing that others see, so that ReportVersion is the present one.
type PhotoRefused struct {
	Subject
	PhotoID uuid.UUID   `json:"photo_id"`
	Reason  PhotoReason `json:"reason"`
}

// Key returns PhotoRefusedKey.
func (*PhotoRefused) Key() Key { return PhotoRefusedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoRefused) Validate() error {
	return m.check(
		isID("photo_id", m.PhotoID),
		oneOf("reason", m.Reason, PhotoUnsupported, PhotoTooLarge, PhotoDamaged, PhotoInfected, PhotoUnsuitable, PhotoFailed),
	)
}

// PhotoUploaded asks the photo worker to process an upload. Nobody sees
// the photo yet, so that ReportVersion is the present one.
type PhotoUploaded struct {
	Subject
	PhotoID uuid.UUID `json:"photo_id"`
}

// Key returns PhotoUploadedKey.
func (*PhotoUploaded) Key() Key { return PhotoUploadedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoUploaded) Validate() error { return m.check(isID("photo_id", m.PhotoID)) }
