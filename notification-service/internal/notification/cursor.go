package notification

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// ErrCursor says that a text is not a Cursor, or is one of other streams.
var ErrCursor = fault.New(fault.Invalid, "not a cursor of your streams; begin again without one")

// A Position is a place in a stream: after the notification with that number.
type Position struct {
	Epoch string // of the stream, at most 8 letters and digits
	Seq   int64
}

// A Cursor is a position in each of a reader's streams, in the order of
// Reader.Streams. Its text is the id of a Server-Sent Event: below 64 bytes
// of letters, digits and dots, because a longer or richer one costs a
// cross-origin client a preflight with every reconnection.
type Cursor []Position

// String returns "v1.<epoch>.<seq>", with a second pair for a second stream.
func (c Cursor) String() string { return string(c.AppendText(make([]byte, 0, 64))) }

// AppendText appends the text of c to b.
func (c Cursor) AppendText(b []byte) []byte {
	b = append(b, "v1"...)
	for _, p := range c {
		b = append(b, '.')
		b = append(b, p.Epoch...)
		b = append(b, '.')
		b = strconv.AppendInt(b, p.Seq, 10)
	}
	return b
}

// maxEpoch is the length of an epoch that lets two positions fit 64 bytes.
const maxEpoch = 8

// ParseCursor reads what String wrote, or returns ErrCursor.
func ParseCursor(s string) (Cursor, error) {
	parts := strings.Split(s, ".")
	if parts[0] != "v1" || (len(parts) != 3 && len(parts) != 5) {
		return nil, fmt.Errorf("%w: must be v1.<epoch>.<number>", ErrCursor)
	}
	c := make(Cursor, 0, 2)
	for i := 1; i < len(parts); i += 2 {
		seq, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || strconv.FormatInt(seq, 10) != parts[i+1] || seq < 0 {
			return nil, fmt.Errorf("%w: must have a number from 0 on", ErrCursor)
		}
		if !validEpoch(parts[i]) {
			return nil, fmt.Errorf("%w: must have an epoch of up to %d letters and digits", ErrCursor, maxEpoch)
		}
		c = append(c, Position{parts[i], seq})
	}
	return c, nil
}

func validEpoch(s string) bool {
	if s == "" || len(s) > maxEpoch {
		return false
	}
	for _, b := range []byte(s) {
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}
