package report

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// The kinds of failures that only photos have.
const (
	NotReporter   fault.Kind = "not reporter"
	TooManyPhotos fault.Kind = "too many photos"
	PhotoQuota    fault.Kind = "photo quota"
	OtherPhoto    fault.Kind = "other photo"
	StorageFull   fault.Kind = "storage full"
	NoPhotos      fault.Kind = "no photos"
)

// What a photo may fail with.
var (
	ErrNoPhoto    = fault.New(fault.NotFound, "there is no such photo")
	ErrOtherPhoto = fault.New(OtherPhoto, "this id came with another picture before: take a new id for a new picture")
	// ErrNoPhotos is what everything about pictures fails with in a city that has
	// set up no storage for them.
	ErrNoPhotos = fault.New(NoPhotos, "reports have no photos in this city")
	// ErrPhotoRemoved is what the upload of a photo that was removed since fails with.
	ErrPhotoRemoved = fault.New(OtherPhoto, "this photo was removed: take a new id to add it again")
)

const (
	// MaxPhotos is how many photos a report may have.
	MaxPhotos = 5
	// MaxPhotosPerDay is how many photos a reporter may upload within 24 hours,
	// those included that were refused.
	MaxPhotosPerDay = 20
	// MaxPhotoBytes is how large an upload may be. The page sends less than a
	// tenth of it.
	MaxPhotoBytes = 12 << 20
	// MaxAlt is how many characters the text may have that stands for a photo.
	MaxAlt = 300
)

// A PhotoState is how far a photo is.
//
//	checking ──► refused   the worker cannot make a picture of it
//	         ──► held ──► ready      an official shows it, with PHOTO_MODERATION=before,
//	                  └─► refused    or does not
//	         ──► ready
//	any of them ──► removed, by the reporter or an official
type PhotoState string

// The states of a photo. Everybody sees those that are ready; whoever may
// change the report's photos sees all of them but the removed ones.
const (
	PhotoChecking PhotoState = "checking"
	PhotoHeld     PhotoState = "held"
	PhotoReady    PhotoState = "ready"
	PhotoRefused  PhotoState = "refused"
	PhotoRemoved  PhotoState = "removed"
)

// A PhotoReason says why a photo was refused.
type PhotoReason string

// The reasons.
const (
	PhotoUnsupported PhotoReason = "unsupported" // no picture, or of a format that is not taken
	PhotoTooLarge    PhotoReason = "too_large"   // more pixels than are taken
	PhotoDamaged     PhotoReason = "damaged"     // it ends early, or cannot be read
	PhotoInfected    PhotoReason = "infected"    // the virus scanner found something
	PhotoUnsuitable  PhotoReason = "unsuitable"  // an official decided so
	PhotoFailed      PhotoReason = "failed"      // the fault is ours; another attempt may succeed
)

// A Photo is a picture of what a report is about. It does not tell who uploaded
// it: that is the report's reporter, or the city.
type Photo struct {
	ID        uuid.UUID
	ReportID  uuid.UUID
	State     PhotoState
	Reason    PhotoReason // of a refusal
	Alt       string      // what it shows, for those who do not see it
	Official  bool        // whether the city uploaded it
	Width     int         // of the largest picture; 0 before it is made
	Height    int
	CreatedAt time.Time
}

// An Upload is a photo that is to be added to a report.
type Upload struct {
	ID       uuid.UUID
	ReportID uuid.UUID
	Alt      string
	Bytes    int64
	Hash     [32]byte // SHA-256 of the bytes
	Key      string   // under which they are kept
}

// ActsForCity returns whether u acts for the city on f's photos, and an error if u may
// not act on them at all. Whoever filed the report acts as its reporter, also
// an official: an act of the city would name him.
func (u User) ActsForCity(f *Filing) (city bool, err error) {
	switch {
	case u.ID != "" && u.ID == f.Reporter.ID:
		return false, nil
	case u.Official:
		return true, nil
	}
	return false, fault.New(NotReporter, "only who filed a report may change its photos")
}

// CheckPhotos returns an error if a report that has some photos, whose reporter
// has uploaded some today, may not have another.
func CheckPhotos(ofReport, today int, city bool) error {
	if ofReport >= MaxPhotos {
		return fault.New(TooManyPhotos, fmt.Sprintf("the report has %d photos, which is as many as it may have: remove one first", ofReport))
	}
	if !city && today >= MaxPhotosPerDay {
		return fault.New(PhotoQuota, fmt.Sprintf("you have uploaded %d photos within 24 hours, which is as many as you may", today))
	}
	return nil
}

// ShowPhoto notes that everybody sees another photo of f from now on.
func (f *Filing) ShowPhoto(now time.Time) { f.touch(now) }

// A Rect is a part of a photo, in fractions of its width and height from its
// left upper corner.
type Rect struct{ X, Y, Width, Height float64 }

// A Verdict is what the worker finds about a photo.
type Verdict struct {
	Reason PhotoReason // why it is refused; empty if it is not
	Hold   bool        // whether an official has to show it
	Width  int
	Height int
}

// Remove returns what becomes of p when it is removed, by the city or by the
// report's reporter, who may not remove what the city added.
func (p Photo) Remove(city bool) (PhotoState, PhotoReason, error) {
	switch {
	case p.Official && !city:
		return "", "", fault.New(NotReporter, "the city added this photo: only the city may remove it")
	case city && p.State == PhotoHeld && !p.Official:
		return PhotoRefused, PhotoUnsuitable, nil
	}
	return PhotoRemoved, "", nil
}

// Show returns an error if p cannot be shown to everybody.
func (p Photo) Show(city bool) error {
	if !city {
		return errCityOnly
	}
	if p.State != PhotoHeld {
		return fault.New(fault.Conflict, "the photo is "+string(p.State)+", only one that is held can be shown")
	}
	return nil
}

// Redacted returns the photo that takes the place of p, with the id and the size
// of redacted.
func (p Photo) Redacted(redacted Photo, city bool) (Photo, error) {
	if !city {
		return Photo{}, errCityOnly
	}
	if p.State != PhotoHeld && p.State != PhotoReady {
		return Photo{}, fault.New(fault.Conflict, "the photo is "+string(p.State)+", and has no picture")
	}
	p.ID, p.Width, p.Height = redacted.ID, redacted.Width, redacted.Height
	return p, nil
}

var errCityOnly = fault.New(NotReporter, "you filed this report yourself: another official has to decide")

// Judge returns what becomes of p by a verdict. What the city uploads is not
// held: who would show it is the city.
func (p Photo) Judge(v Verdict) PhotoState {
	switch {
	case v.Reason != "":
		return PhotoRefused
	case v.Hold && !p.Official:
		return PhotoHeld
	}
	return PhotoReady
}
