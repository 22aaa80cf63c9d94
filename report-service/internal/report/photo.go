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

// The faults of photos.
var (
	ErrNoPhoto    = fault.New(fault.NotFound, "there is no such photo")
	ErrOtherPhoto = fault.New(OtherPhoto, "this id belongs to another picture: take a new id for a new picture")
	// ErrNoPhotos refuses all requests about pictures in a city without a
	// storage for them.
	ErrNoPhotos = fault.New(NoPhotos, "reports have no photos in this city")
	// ErrPhotoRemoved refuses the repeated upload of a removed photo.
	ErrPhotoRemoved = fault.New(OtherPhoto, "this photo was removed: take a new id to add it again")
)

const (
	// MaxPhotos is how many photos a report may have.
	MaxPhotos = 5
	// MaxPhotosPerDay is how many photos a reporter may upload within 24 hours,
	// refused ones included.
	MaxPhotosPerDay = 20
	// MaxPhotoBytes is how large an upload may be. The page sends less than a
	// tenth of it.
	MaxPhotoBytes = 12 << 20
	// MaxAlt is how many characters the alternative text of a photo may have.
	MaxAlt = 300
)

// A PhotoState is the state of a photo.
//
//	checking ──► refused   the worker cannot make a picture of it
//	         ──► held ──► ready      an official shows it, with PHOTO_MODERATION=before,
//	                  └─► refused    or does not
//	         ──► ready
//	any of them ──► removed, by the reporter or an official
type PhotoState string

// The states of a photo. Everybody sees ready photos; users who may change the
// report's photos see all but the removed ones.
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
	PhotoUnsupported PhotoReason = "unsupported" // not a picture, or of an unsupported format
	PhotoTooLarge    PhotoReason = "too_large"   // too many pixels
	PhotoDamaged     PhotoReason = "damaged"     // truncated or unreadable
	PhotoInfected    PhotoReason = "infected"    // the virus scanner found something
	PhotoUnsuitable  PhotoReason = "unsuitable"  // an official decided so
	PhotoFailed      PhotoReason = "failed"      // an internal error; another attempt may succeed
)

// A Photo is a picture of what a report is about. It does not contain the
// uploader: that is the report's reporter, or the city.
type Photo struct {
	ID        uuid.UUID
	ReportID  uuid.UUID
	State     PhotoState
	Reason    PhotoReason // of a refusal
	Alt       string      // alternative text, for people who cannot see it
	Official  bool        // whether the city uploaded it
	Width     int         // of the largest picture; 0 before it is made
	Height    int
	CreatedAt time.Time
	After     bool // it shows the finished work
	Hold      bool // an official has to show it, because a firm has added it
}

// PhotoID returns an id for a photo, made of 16 random bytes. It is a UUID of
// version 8, which no client chose: everybody sees it, and an id with the time of
// a device in it tells whose device that was, also of an anonymous report.
func PhotoID(random [16]byte) uuid.UUID {
	id := uuid.UUID(random)
	id[6] = photoIDVersion<<4 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f // the variant of RFC 9562
	return id
}

// IsPhotoID reports whether id is of the kind that PhotoID returns.
func IsPhotoID(id uuid.UUID) bool { return id.Version() == photoIDVersion }

const photoIDVersion = 8

// An Upload is a photo that is to be added to a report.
type Upload struct {
	// ID is chosen by the client. A repetition is recognised by it, and nobody
	// else ever sees it: the photo has another.
	ID       uuid.UUID
	ReportID uuid.UUID
	Alt      string
	After    bool // it shows the finished work
	Bytes    int64
	Hash     [32]byte // SHA-256 of the bytes
	Key      string   // under which the bytes are stored
}

// ActsForCity returns whether u acts for the city on f's photos, and an error
// if u may not act on them at all. The reporter acts as a resident even if they
// are an official: an act of the city would name them.
func (u User) ActsForCity(f *Filing) (city bool, err error) {
	switch {
	case u.ID != "" && u.ID == f.Reporter.ID:
		return false, nil
	case u.Official, u.Scope.connection:
		return true, May(u, Handle, f)
	}
	return false, fault.New(NotReporter, "only the reporter may change the photos of a report")
}

// UploadsForCity is ActsForCity for a photo that u adds. One that an official adds to a
// report that was filed for somebody is that person's, unless it shows the finished work:
// everybody else sees the photos of an anonymous report. Only the city shows finished work.
func (u User) UploadsForCity(f *Filing, after bool) (city bool, err error) {
	city, err = u.ActsForCity(f)
	switch {
	case err != nil:
		return false, err
	case u.Scope.connection && !after:
		return false, fault.New(NotReporter, "a connection may add photos of the finished work alone: send purpose=after")
	case after && !city:
		return false, fault.New(NotReporter, "only the city may add photos of the finished work")
	}
	return city && (after || !f.ForCaller()), nil
}

// Holds reports whether what u adds waits for an official: u is a firm, which the city does
// not know well enough to let it publish.
func (u User) Holds() bool { return u.Scope.job != uuid.Nil }

// CheckPhotos returns an error if a report with so many photos of the same purpose, whose
// reporter has uploaded so many today, may not get another.
func CheckPhotos(ofReport, today int, city bool) error {
	if ofReport >= MaxPhotos {
		return fault.New(TooManyPhotos, fmt.Sprintf("the report has %d photos, which is the limit: remove one first", ofReport))
	}
	if !city && today >= MaxPhotosPerDay {
		return fault.New(PhotoQuota, fmt.Sprintf("you have uploaded %d photos within 24 hours, which is the limit", today))
	}
	return nil
}

// ShowPhoto records that everybody sees another photo of f.
func (f *Filing) ShowPhoto(now time.Time) { f.touch(now) }

// A Rect is a part of a photo, in fractions of its width and height from its
// left upper corner.
type Rect struct{ X, Y, Width, Height float64 }

// A Judgement is the worker's decision on a photo.
type Judgement struct {
	Reason PhotoReason // why it is refused; empty otherwise
	Hold   bool        // whether an official has to show it
	Width  int
	Height int
}

// Remove returns the state and reason of p after its removal by the city or by
// the report's reporter, who may not remove the city's photos.
func (p Photo) Remove(city bool) (PhotoState, PhotoReason, error) {
	switch {
	case p.Official && !city:
		return "", "", fault.New(NotReporter, "the city added this photo, and only the city may remove it")
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
		return fault.New(fault.Conflict, "the photo is "+string(p.State)+", and only a held one can be shown")
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

// Judge returns the state of p after a verdict. The city's uploads are not
// held, because the city itself would have to release them.
func (p Photo) Judge(v Judgement) PhotoState {
	switch {
	case v.Reason != "":
		return PhotoRefused
	case v.Hold && !p.Official, p.Hold:
		return PhotoHeld
	}
	return PhotoReady
}
