package notification

import (
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

const (
	// MaxFollows is how many reports somebody can follow: the page requests each.
	MaxFollows = 200
	// MaxFollowers is how many can follow a report: a change of its status is one
	// transaction, and others wait for its end.
	MaxFollowers = 5_000
)

// The limits of follows.
var (
	ErrFollows   = fault.New(fault.Conflict, "you follow 200 reports already: unfollow one first")
	ErrFollowers = fault.New(fault.Conflict, "too many people follow this report already")
)

// A Follow says that somebody follows a report.
type Follow struct {
	ReportID   uuid.UUID
	FollowedAt time.Time
}

// ErrNotFound says that there is no such notification for this reader.
var ErrNotFound = fault.New(fault.NotFound, "no such notification")

// A Reader is a user who reads notifications.
type Reader struct {
	UserID   string
	Official bool // reads the officials' stream beside their own
	// Departments are the codes of those that an official works for alone, with spaces between.
	Departments string
}

// Own is the stream of this reader alone. The read marks are kept under it.
func (r Reader) Own() Stream { return UserStream(r.UserID) }

// Streams lists the streams of the reader, their own first.
func (r Reader) Streams() []Stream {
	if r.Official && r.Departments != "" {
		return []Stream{r.Own(), DeskStream(r.Departments)}
	}
	if r.Official {
		return []Stream{r.Own(), Officials}
	}
	return []Stream{r.Own()}
}

// A Head is the position of a stream's last notification.
type Head struct {
	Stream Stream
	Position
}

// A View is the heads of a reader's streams and how much of them is unread.
type View struct {
	Heads  []Head // in the order of Reader.Streams
	Unread int64
	// OnlyOwn says that the reader has turned off the officials' stream, whose
	// notifications are then neither listed nor counted.
	OnlyOwn bool
}

// Cursor returns the position of everything that the view has.
func (v View) Cursor() Cursor {
	c := make(Cursor, len(v.Heads))
	for i, h := range v.Heads {
		c[i] = h.Position
	}
	return c
}

// An Item is a notification as one reader sees it.
type Item struct {
	Notification
	Read bool
}

// A Page is a part of a reader's list, newest first.
type Page struct {
	Items []Item
	View  View
	Next  Cursor // where the next page begins, nil after the last
}
