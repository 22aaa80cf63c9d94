package notification

import "github.com/cityconnect/cityconnect/platform/fault"

// ErrNotFound says that there is no such notification for this reader.
var ErrNotFound = fault.New(fault.NotFound, "no such notification")

// A Reader is someone who is told things.
type Reader struct {
	UserID   string
	Official bool // reads the officials' stream beside his own
}

// Own is the stream of this reader alone. What he has read is noted under it.
func (r Reader) Own() Stream { return UserStream(r.UserID) }

// Streams lists what the reader follows; his own comes first.
func (r Reader) Streams() []Stream {
	if r.Official {
		return []Stream{r.Own(), Officials}
	}
	return []Stream{r.Own()}
}

// A Head is where a stream stands: at its last notification.
type Head struct {
	Stream Stream
	Position
}

// A View is where a reader's streams stand and what he has not read of them.
type View struct {
	Heads  []Head // in the order of Reader.Streams
	Unread int64
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
